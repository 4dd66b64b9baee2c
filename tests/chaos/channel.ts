// `deno task chaos --channel --messages N --seed S`: a long campaign against the channel. Prints its
// seed first and what went wrong last; the same seed rolls the same troubles. With --calm nothing goes
// wrong and every message begins a thread. With --threads N gatewayd answers N threads and N more in a
// small heap, and its connection is broken --reconnections times; what it holds is printed.
import { parseArgs } from "node:util";
import { growthProblems, startGrowthHouse, stormProblems } from "./channel_growth.ts";
import { campaign } from "./channel_campaign.ts";

async function growth(threads: number, reconnections: number): Promise<number> {
  const problems: string[] = [];
  {
    await using busy = await startGrowthHouse();
    const grown = await busy.grow(threads, console.log);
    console.log(JSON.stringify({ threads, ...grown }));
    problems.push(...growthProblems(grown));
  }
  {
    await using breaking = await startGrowthHouse();
    const storm = await breaking.storm(reconnections, console.log);
    console.log(JSON.stringify(storm));
    problems.push(...stormProblems(storm, reconnections));
  }
  for (const problem of problems) console.log(problem);
  console.log(problems.length === 0 ? "memory is flat and nothing multiplied" : "FAILED");
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      channel: { type: "boolean" },
      messages: { type: "string", default: "1000" },
      seed: { type: "string" },
      threads: { type: "string" },
      reconnections: { type: "string", default: "200" },
      calm: { type: "boolean", default: false },
    },
  });
  if (values.threads !== undefined) {
    Deno.exit(await growth(Number(values.threads), Number(values.reconnections)));
  }
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  console.log(`seed ${seed}`);
  const outcome = await campaign({
    messages: Number(values.messages),
    seed,
    patienceMs: 120_000,
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
