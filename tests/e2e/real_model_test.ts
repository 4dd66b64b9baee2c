// The real llama-server and the small real model, through every process: a conversation with tool
// calls in containers, in whose middle inferproxy and loopd are killed and memory is written, and each
// request reuses exactly what it can. Skipped by name without the model.
import { match, ok, strictEqual } from "node:assert";
import { smallModel } from "../../launch/served_model.ts";
import { e2eHouse, NO_CONTAINERS } from "../doubles/e2e_house.ts";
import { hasRealLlama, REAL_LLAMA_MISSING } from "../doubles/real_llama.ts";

const SOURCE = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
// A model this small copies a path of plain words and loses a digit of a random one.
const PAPERS = "/tmp/boxmaker-papers";
const reason = NO_CONTAINERS ?? (hasRealLlama() ? null : REAL_LLAMA_MISSING);
const NAME = "real model: calls tools in containers and reuses its prompt exactly, over both kills";

const PLACES = { plan: "door", letter: "gate", garden: "clock" };
const wordsOf = (place: string) => `The spare key hangs behind the blue ${place}.`;

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
    for (const [name, place] of Object.entries(PLACES)) {
      await Deno.writeTextFile(`${PAPERS}/${name}.txt`, `${wordsOf(place)}\n`);
    }
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
  const read = async (name: keyof typeof PLACES) => {
    const asked = `Read the file ${PAPERS}/${name}.txt and tell me what it says.`;
    const answer = await house.chat(asked, first.session);
    ok(answer.text.includes(wordsOf(PLACES[name])), answer.text);
  };
  await read("plan");
  await house.kill("inferproxy");
  await read("letter");
  await Deno.writeTextFile(`${house.house.home}/memory/memory.md`, "The owner likes tea.\n");
  await house.kill("loopd");
  await read("garden");
  const last = await house.chat("Hello.", first.session);
  strictEqual(last.kind, "reply", last.text);

  const records = await house.records(first.session);
  const results = records.filter((record) => record.kind === "tool_result");
  strictEqual(results.length, 3);
  for (const result of results) {
    strictEqual(result.outcome, "done");
    match(String(result.container), /^bx-/);
  }
  const timings = records.filter((record) => record.kind === "assistant")
    .map((record): Timings => Object(record.timings));
  strictEqual(timings.length, 8);
  for (const [i, now] of timings.entries()) {
    const last = timings[i - 1];
    if (last === undefined) continue;
    strictEqual(now.cache_n, last.cache_n + last.prompt_n + last.predicted_n - 1, `request ${i}`);
  }
  strictEqual(records.some((record) => record.kind === "cache_loss"), false);
}
