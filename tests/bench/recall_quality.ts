// How well recall finds things: conversations with questions whose evidence is known, in the file
// format of LoCoMo, put through the product's own index and ranking.
//
// Turn R@10 is the part of a question's evidence turns among the first 10 hits; session R@k the part
// of its evidence sessions among the first k sessions that the hits come from; a mean over questions.
import { createIndexDb, type Row } from "../../roles/memoryd/index_db.ts";
import { termsOf } from "../../roles/memoryd/words.ts";

interface Turn {
  readonly dia_id: string;
  readonly speaker: string;
  readonly text: string;
  readonly blip_caption?: string;
}
interface Question {
  readonly question: string;
  readonly evidence: readonly string[];
  readonly category: number;
}
export interface Conversation {
  readonly sample_id?: string;
  readonly conversation: Readonly<Record<string, unknown>>;
  readonly qa: readonly Question[];
}

const ADVERSARIAL = 5;
const DEPTH = 50;

export interface Quality {
  readonly questions: number;
  readonly turnAt10: number;
  readonly allAt10: number;
  readonly sessionAt5: number;
  readonly sessionAt10: number;
  readonly reciprocalRank: number;
  readonly p95Ms: number;
}

/** `1:56 pm on 8 May, 2023` as a wall time; another form counts as unknown. */
function timeOf(text: unknown): number {
  const [, time = "", half, date = ""] = /^([\d:]+) ([ap]m) on (.+)$/.exec(String(text)) ?? [];
  const ms = Date.parse(`${date} ${time} ${half} UTC`);
  return Number.isNaN(ms) ? 0 : ms;
}

function rowsOf(conversation: Conversation["conversation"], session: number): [string, Row][] {
  const turns: readonly Turn[] = JSON.parse(JSON.stringify(conversation[`session_${session}`]));
  const start = timeOf(conversation[`session_${session}_date_time`]);
  return turns.map((turn, record) => [turn.dia_id, {
    log: `s${session}`,
    record,
    part: 0,
    time_unix_ms: start + record * 1_000,
    who: turn.speaker.slice(0, 64),
    tag: "experience",
    class: "private",
    untrusted: false,
    text: `${turn.speaker}: ${turn.text} ${turn.blip_caption ?? ""}`.trimEnd(),
  }]);
}

/** Ids as they were meant: `D8:6; D9:17` is two, `D:11:26` is `D11:26`; unknown ones are dropped. */
function evidenceOf(question: Question, known: ReadonlySet<string>): string[] {
  const ids = question.evidence.flatMap((text) => text.split(/[;\s]+/))
    .map((id) => id.replace(/^D:/, "D"));
  return [...new Set(ids)].filter((id) => known.has(id));
}

const share = (wanted: readonly string[], found: readonly string[]) =>
  wanted.filter((one) => found.includes(one)).length / wanted.length;
const sessionOf = (id: string) => id.split(":")[0] ?? "";
const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / list.length;

type Scored = [turn: number, all: number, s5: number, s10: number, rank: number, ms: number];

function scored({ conversation, qa }: Conversation): Scored[] {
  const db = createIndexDb(":memory:", "private");
  const idAt = new Map<string, string>();
  const sessions = Object.keys(conversation).flatMap((key) =>
    /^session_(\d+)$/.exec(key)?.[1] ?? []
  )
    .map(Number).sort((a, b) => a - b);
  for (const session of sessions) {
    const rows = rowsOf(conversation, session);
    for (const [id, row] of rows) idAt.set(`${row.log}/${row.record}`, id);
    db.inOneStep(() => db.add(`s${session}`, rows.map(([, row]) => row)));
  }
  const known = new Set(idAt.values());
  const results = qa.filter((one) => one.category !== ADVERSARIAL).flatMap((one): Scored[] => {
    const wanted = evidenceOf(one, known);
    if (wanted.length === 0) return [];
    const start = performance.now();
    const hits = db.search(termsOf(one.question), DEPTH);
    const ms = performance.now() - start;
    const found = hits.map((hit) => idAt.get(`${hit.log}/${hit.record}`) ?? "");
    const places = [...new Set(found.map(sessionOf))];
    const origins = [...new Set(wanted.map(sessionOf))];
    const turn = share(wanted, found.slice(0, 10));
    const first = found.findIndex((id) => wanted.includes(id));
    return [[
      turn,
      turn === 1 ? 1 : 0,
      share(origins, places.slice(0, 5)),
      share(origins, places.slice(0, 10)),
      first < 0 ? 0 : 1 / (first + 1),
      ms,
    ]];
  });
  db.close();
  return results;
}

/** Measures a file's conversations, each in an index of its own. */
export function measureQuality(conversations: readonly Conversation[]): Quality {
  const all = conversations.flatMap(scored);
  const column = (i: number) => all.map((one) => one[i] ?? 0);
  const times = column(5).sort((a, b) => a - b);
  return {
    questions: all.length,
    turnAt10: 100 * mean(column(0)),
    allAt10: 100 * mean(column(1)),
    sessionAt5: 100 * mean(column(2)),
    sessionAt10: 100 * mean(column(3)),
    reciprocalRank: mean(column(4)),
    p95Ms: times[Math.floor(times.length * 0.95)] ?? 0,
  };
}
