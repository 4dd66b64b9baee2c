// The real llama-server and the small real model, through every process: three messages, a tool call
// in a container, and each request reuses exactly what it can. Skipped by name without the model.
import { match, strictEqual } from "node:assert";
import { smallModel } from "../../launch/served_model.ts";
import { e2eHouse, NO_CONTAINERS } from "../doubles/e2e_house.ts";
import { hasRealLlama, REAL_LLAMA_MISSING } from "../doubles/real_llama.ts";

const SOURCE = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
// A model this small copies a path of plain words and loses a digit of a random one.
const PAPERS = "/tmp/boxmaker-papers";
const reason = NO_CONTAINERS ?? (hasRealLlama() ? null : REAL_LLAMA_MISSING);
const NAME = "real model: answers, calls a tool in a container, and reuses its prompt exactly";

interface Timings {
  readonly cache_n: number;
  readonly prompt_n: number;
  readonly predicted_n: number;
}

Deno.test({
  name: reason === null ? NAME : `${NAME} (skipped: ${reason})`,
  ignore: reason !== null,
  fn: async () => {
    await Deno.mkdir(PAPERS, { recursive: true });
    await Deno.writeTextFile(`${PAPERS}/plan.txt`, "The spare key hangs behind the blue door.\n");
    try {
      await converse();
    } finally {
      await Deno.remove(PAPERS, { recursive: true });
    }
  },
});

async function converse(): Promise<void> {
  await using house = await e2eHouse({
    model: smallModel(SOURCE),
    roots: [PAPERS],
    grants: () => ({
      "read.toml": `tool = "read_file"\nmode = "auto"\npaths = ["${PAPERS}"]\n` +
        'max_taint = "private"\nresult_class = "private"\nuntrusted = false\n',
    }),
  });
  const first = await house.chat("Hello.");
  strictEqual(first.kind, "reply", first.text);
  const second = await house.chat(
    `Read the file ${PAPERS}/plan.txt and tell me what it says.`,
    first.session,
  );
  match(second.text, /spare key hangs behind the blue door/);
  const third = await house.chat("Hello.", first.session);
  strictEqual(third.kind, "reply", third.text);

  const records = await house.records(first.session);
  const result = records.find((record) => record.kind === "tool_result");
  strictEqual(result?.outcome, "done");
  match(String(result?.container), /^bx-/);
  const timings = records.filter((record) => record.kind === "assistant")
    .map((record): Timings => Object(record.timings));
  strictEqual(timings.length, 4);
  for (const [i, now] of timings.entries()) {
    const last = timings[i - 1];
    if (last === undefined) continue;
    strictEqual(now.cache_n, last.cache_n + last.prompt_n + last.predicted_n - 1, `request ${i}`);
  }
  strictEqual(records.some((record) => record.kind === "cache_loss"), false);
}
