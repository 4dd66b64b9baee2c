// `deno task bench:recall [--data FILE] [--large] [--quality] [--each]`: how well and how fast recall
// finds things. Figures only; nothing passes or fails. --large adds a million records, --quality leaves
// speed out, --each adds the figures of each conversation, so that a change can be tuned on some and
// judged by the others.
import { parseArgs } from "node:util";
import { missedQuestions, QUESTIONS } from "./recall_languages.ts";
import { type Conversation, measureQuality } from "./recall_quality.ts";
import { measureSpeed, type Times } from "./recall_speed.ts";

const USUAL_DATA = decodeURIComponent(
  new URL("../../../shared/data/locomo-dev.json", import.meta.url).pathname,
);

type Detail = "whole" | "each";

function quality(path: string, detail: Detail): void {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch {
    console.log(`quality: skipped, ${path} is not there`);
    return;
  }
  const conversations: readonly Conversation[] = JSON.parse(text);
  const { questions, p95Ms, ...figures } = measureQuality(conversations);
  const fixed = (figure: number, digits: number) => figure.toFixed(digits).padStart(6);
  console.log(`quality: ${path}, ${questions} questions`);
  console.log(`  turn R@10      ${fixed(figures.turnAt10, 1)}`);
  console.log(`  all found @10  ${fixed(figures.allAt10, 1)}`);
  console.log(`  session R@5    ${fixed(figures.sessionAt5, 1)}`);
  console.log(`  session R@10   ${fixed(figures.sessionAt10, 1)}`);
  console.log(`  MRR            ${fixed(figures.reciprocalRank, 3)}`);
  console.log(`  p95 ms         ${fixed(p95Ms, 1)}`);
  for (const one of detail === "each" ? conversations : []) {
    const { turnAt10, sessionAt5, sessionAt10, questions } = measureQuality([one]);
    const shares = [turnAt10, sessionAt5, sessionAt10].map((share) => fixed(share, 1)).join(" ");
    console.log(`  ${one.sample_id ?? "?"}: ${shares} of ${questions} questions`);
  }
}

function languages(): void {
  const missed = missedQuestions();
  console.log(`languages: ${QUESTIONS.length - missed.length} of ${QUESTIONS.length} found first`);
  for (const one of missed) console.log(`  missed ${one}`);
}

function speed(rows: number): void {
  const made = measureSpeed(rows);
  const line = (what: string, { p50, p95 }: Times) =>
    console.log(`  ${what.padEnd(13)} p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`);
  console.log(`speed: ${rows.toLocaleString("en")} records`);
  line("search", made.search);
  line("plain query", made.plain);
  line("texts alone", made.bare);
  const [same, bare] = [made.plain, made.bare].map(({ p95 }) => made.search.p95 / p95);
  console.log(`  p95 ratio     ${same?.toFixed(2)}, to the texts alone ${bare?.toFixed(2)}`);
  const rate = (perSecond: number) => `${Math.round(perSecond).toLocaleString("en")} records/s`;
  console.log(`  reindex       ${rate(made.builtPerSecond)}`);
  console.log(`  plain inserts ${rate(made.insertedPerSecond)}`);
}

const { values } = parseArgs({
  args: Deno.args,
  options: {
    data: { type: "string", default: USUAL_DATA },
    large: { type: "boolean", default: false },
    quality: { type: "boolean", default: false },
    each: { type: "boolean", default: false },
  },
});
quality(values.data, values.each ? "each" : "whole");
languages();
if (!values.quality) {
  for (const rows of [10_000, 100_000, ...(values.large ? [1_000_000] : [])]) speed(rows);
}
