// Guards the README's sentence that a loopd killed at any moment finishes what it began, with the
// same log and no tool call twice. Real processes under loopd's own flags.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { campaign } from "./loopd_campaign.ts";

const KILLS = 20;

Deno.test("loopd killed at random moments leaves the log of a run without kills", async () => {
  const whole = await campaign(0, 1);
  strictEqual(whole.kills, 0);
  strictEqual(whole.runs.length, 20);
  const seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  const killed = await campaign(KILLS, seed);
  assert(killed.kills > 0, "it was never killed");
  deepStrictEqual(killed.log, whole.log, `seed ${seed}`);
  deepStrictEqual(killed.runs, whole.runs, `seed ${seed}`);
  deepStrictEqual(killed.items, whole.items, `seed ${seed}`);
});
