// `deno task chaos --channel --messages N --seed S`: a long campaign against the channel. Prints its
// seed first and what went wrong last; the same seed rolls the same troubles. With --calm nothing goes
// wrong and every message begins a thread, so that gatewayd's memory can be watched.
import { parseArgs } from "node:util";
import { campaign } from "./channel_campaign.ts";

if (import.meta.main) {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      channel: { type: "boolean" },
      messages: { type: "string", default: "1000" },
      seed: { type: "string" },
      calm: { type: "boolean", default: false },
    },
  });
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  console.log(`seed ${seed}`);
  const outcome = await campaign({
    messages: Number(values.messages),
    seed,
    patienceMs: 60_000,
    say: console.log,
    isCalm: values.calm,
  });
  console.log(JSON.stringify({ ...outcome, problems: outcome.problems.length }));
  for (const problem of outcome.problems) console.log(problem);
  if (outcome.leftAt !== null) {
    console.log(`seed ${seed}; logs and state are left at ${outcome.leftAt}`);
  }
  console.log(
    outcome.problems.length === 0 ? "every message was answered once, in order" : "FAILED",
  );
  Deno.exit(outcome.problems.length === 0 ? 0 : 1);
}
