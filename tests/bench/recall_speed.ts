// How fast recall is: the product's search beside the plain SQL query for the same question, in the same
// index and in a table that holds the texts and nothing else, and building an index beside plain inserts
// of the same texts. They take turns in one run.
import { DatabaseSync } from "node:sqlite";
import { seededRandom } from "../../shared/clock/random.ts";
import { createIndexDb, openIndexDb, type Row } from "../../roles/memoryd/index_db.ts";
import { matchQuery, termsOf } from "../../roles/memoryd/words.ts";

const WORDS = 40_000;
const TURNS_A_LOG = 40;
const LOGS_A_STEP = 12;
const QUESTIONS = 200;

export interface Speed {
  readonly rows: number;
  readonly search: Times;
  /** The same words asked of the same index, without what the ranking does. */
  readonly plain: Times;
  /** The same words asked of a full-text table of the texts alone. */
  readonly bare: Times;
  readonly builtPerSecond: number;
  readonly insertedPerSecond: number;
}
export interface Times {
  readonly p50: number;
  readonly p95: number;
}

/** Words by rank with the frequencies of natural text; the commonest hundred are real stop words. */
function wordSource(seed: number): () => string {
  const random = seededRandom(seed);
  const unit = () => new DataView(random.bytes(4).buffer).getUint32(0) / 2 ** 32;
  const common = "the of and to a in is it you that he was for on are with as I his they be at one"
    .split(" ");
  return () => {
    const rank = Math.floor(WORDS ** unit());
    return common[rank] ?? `w${rank.toString(36)}q`;
  };
}

function* logs(rows: number): Generator<Row[]> {
  const word = wordSource(1);
  for (let first = 0; first < rows; first += TURNS_A_LOG) {
    const log = `s${first / TURNS_A_LOG}`;
    yield Array.from({ length: Math.min(TURNS_A_LOG, rows - first) }, (_, record) => ({
      log,
      record,
      part: 0,
      time_unix_ms: 1_700_000_000_000 + (first + record) * 60_000,
      who: "the owner said",
      tag: "experience" as const,
      class: "private" as const,
      untrusted: false,
      text: Array.from({ length: 14 }, word).join(" "),
    }));
  }
}

function build(path: string, rows: number): number {
  const db = createIndexDb(path, "private");
  const start = performance.now();
  let step: Row[][] = [];
  const keep = () => {
    db.inOneStep(() => step.forEach((log) => db.add(log[0]?.log ?? "", log)));
    step = [];
  };
  for (const log of logs(rows)) {
    if (step.push(log) === LOGS_A_STEP) keep();
  }
  keep();
  db.close();
  return rows / (performance.now() - start) * 1_000;
}

function insertPlainly(path: string, rows: number): number {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  db.exec("CREATE VIRTUAL TABLE t USING fts5(text, tokenize = 'porter unicode61')");
  const insert = db.prepare("INSERT INTO t VALUES (?)");
  const start = performance.now();
  db.exec("BEGIN");
  for (const log of logs(rows)) for (const { text } of log) insert.run(text);
  db.exec("COMMIT");
  db.close();
  return rows / (performance.now() - start) * 1_000;
}

/** Each one's best time of three, taken in turns, as other programs share the machine. */
function fastest(ways: readonly (() => unknown)[]): number[] {
  const best = ways.map(() => Infinity);
  for (let round = 0; round < 3; round++) {
    ways.forEach((way, i) => {
      const start = performance.now();
      way();
      best[i] = Math.min(best[i] ?? Infinity, performance.now() - start);
    });
  }
  return best;
}

function timesOf(list: readonly number[]): Times {
  const sorted = list.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
  return { p50: at(0.5), p95: at(0.95) };
}

/** Measures an index of `rows` synthetic texts. */
export function measureSpeed(rows: number): Speed {
  const folder = Deno.makeTempDirSync({ prefix: "bxr" });
  try {
    const insertedPerSecond = insertPlainly(`${folder}/plain.sqlite3`, rows);
    const builtPerSecond = build(`${folder}/index.sqlite3`, rows);
    const db = openIndexDb(`${folder}/index.sqlite3`, "private");
    if (db === undefined) throw new Error("The index just built is not whole");
    const raw = new DatabaseSync(`${folder}/index.sqlite3`, { readOnly: true });
    const plainQuery = raw.prepare(
      "SELECT rowid, bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY score LIMIT 10",
    );
    const word = wordSource(2);
    const bareTable = new DatabaseSync(`${folder}/plain.sqlite3`, { readOnly: true });
    const bareQuery = bareTable.prepare(
      "SELECT rowid, bm25(t) AS score FROM t WHERE t MATCH ? ORDER BY score LIMIT 10",
    );
    const taken: number[][] = [[], [], []];
    for (let i = 0; i < QUESTIONS; i++) {
      const question = Array.from({ length: 7 }, word).join(" ");
      const terms = termsOf(question);
      const query = matchQuery(terms) ?? '""';
      const ways = [
        () => db.search(terms, 10),
        () => plainQuery.all(query),
        () => bareQuery.all(query),
      ];
      fastest(ways).forEach((ms, way) => taken[way]?.push(ms));
    }
    bareTable.close();
    raw.close();
    db.close();
    return {
      rows,
      search: timesOf(taken[0] ?? []),
      plain: timesOf(taken[1] ?? []),
      bare: timesOf(taken[2] ?? []),
      builtPerSecond,
      insertedPerSecond,
    };
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}
