// Guards: every message of the owner is answered exactly once, in its thread, in order, whatever breaks
// between. The short form of `deno task chaos --channel`.
import { deepStrictEqual, ok } from "node:assert";
import { campaign } from "./channel_campaign.ts";

Deno.test("channel: broken lines, lost answers, restarts and kills lose and repeat no message", async () => {
  const seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  const outcome = await campaign({ messages: 25, seed, patienceMs: 25_000 });
  deepStrictEqual(outcome.problems, [], `seed ${seed}`);
  ok(Object.keys(outcome.faults).length > 2, "hardly anything went wrong");
});
