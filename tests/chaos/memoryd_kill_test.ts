// Guards: memoryd killed at any moment, under its real flags, loses no acknowledged write, and its
// files and journal agree after the next start. `deno task chaos --role memoryd` does it at length.
import { ok } from "node:assert";
import { systemRandom } from "../../shared/clock/random.ts";
import { campaign } from "./memoryd_campaign.ts";

Deno.test("memoryd no kill at any moment loses an acknowledged note or edit", async () => {
  const seed = systemRandom.bytes(1)[0] ?? 0;
  ok((await campaign(5, seed)).notes > 0, `seed ${seed}: nothing was acknowledged`);
});
