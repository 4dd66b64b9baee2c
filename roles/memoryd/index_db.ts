// The recall index as a database: its tables, one way in for rows, one way out for hits.
//
// 1. A row's id is made of its time and place alone, so an index built anew has the same ids, and the
//    newest of equal hits comes first by comparing ids.
// 2. Each row carries a digest of itself, checked when it is shown: a damaged label is never believed.
// 3. A row lends its words to its neighbours in the same log only where that makes no neighbour seem
//    cleaner: the lender's label must be covered by the borrower's.
// Everything here may throw what SQLite throws; the index is disposable and its keeper rebuilds it.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { hash } from "node:crypto";
import { z } from "zod";
import { DataClass, equalLabel, join, type Label } from "../../shared/labels/label.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import { matchQuery, type Terms, tokens } from "./words.ts";

/** Changes whenever tables, folding or ids do: an index of another form is built anew. */
export const INDEX_FORM = "1";

/** One text that can be found. */
export type Row = {
  /** Record number in a session log, note number in notes.md. */
  readonly record: number;
  /** 0 for the text of a record, 1 and up for its calls. */
  readonly part: number;
  readonly timeUnixMs: number;
  readonly who: string;
  readonly tag: "experience" | "identity";
  readonly label: Label;
  readonly text: string;
};

const StoredRow = z.object({
  id: z.int(),
  log: z.string(),
  record: z.int(),
  part: z.int(),
  time: z.int(),
  who: z.string(),
  tag: z.enum(["experience", "identity"]),
  class: DataClass,
  untrusted: z.int(),
  text: z.string(),
  digest: z.string(),
});
type StoredRow = z.output<typeof StoredRow>;

/** A row that a search found. */
export type Found = Row & { readonly log: string };

/** Where reading of a log stands: everything before `offset` is in the index. */
export const Progress = z.strictObject({
  offset: z.int().min(0),
  /** Number and previous hash that the next record must have; heads seen, for notes.md. */
  next: z.int().min(0),
  prev: z.string(),
  class: DataClass,
  untrusted: z.int(),
  /** Why the log was skipped, empty when it was not. */
  problem: z.string(),
});
export type Progress = z.output<typeof Progress>;

const TABLES = `
  CREATE TABLE about (form TEXT NOT NULL, max_class TEXT NOT NULL) STRICT;
  CREATE TABLE logs (
    log TEXT PRIMARY KEY, offset INTEGER NOT NULL, next INTEGER NOT NULL, prev TEXT NOT NULL,
    class TEXT NOT NULL, untrusted INTEGER NOT NULL, problem TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE rows (
    id INTEGER PRIMARY KEY, log TEXT NOT NULL, record INTEGER NOT NULL, part INTEGER NOT NULL,
    time INTEGER NOT NULL, who TEXT NOT NULL, tag TEXT NOT NULL, class TEXT NOT NULL,
    untrusted INTEGER NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX places ON rows (log, record, part);
  CREATE VIRTUAL TABLE words USING fts5 (
    own, near, content = '',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* S* C*'"
  );
`;

/** Weight of a neighbour's words against a text's own. */
const NEAR_WEIGHT = 0.4;
/** Rows that one search may rank; words that are in more say little. */
const MAX_ROWS = 8_000;
const SLOTS = 1_024;
const MAX_TIME = 2 ** 42;

export interface IndexDb {
  /** Runs `change` in one transaction: all of it is kept or none. */
  inOneStep(change: () => void): void;
  /** Adds rows of one log that follow all rows it has. */
  add(log: string, rows: readonly Row[]): void;
  /** Forgets a log and what was read from it. */
  drop(log: string): void;
  progress(log: string): Progress | undefined;
  setProgress(log: string, progress: Progress): void;
  logs(): string[];
  /** Logs that were skipped, and why. */
  problems(): { log: string; problem: string }[];
  /** The best `k` rows for a question's terms. Throws when a row is not what was stored. */
  search(terms: Terms, k: number): Found[];
  counts(): { logs: number; rows: number; notes: number };
  close(): void;
}

/** Opens an index file of this form and class limit; undefined when it is another or none. */
export function openIndexDb(path: string, maxClass: DataClass): IndexDb | undefined {
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const tables = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'about'").get();
    if (tables?.n === 1 && isWhole(db)) {
      const about = db.prepare("SELECT form, max_class FROM about").get();
      if (about?.form === INDEX_FORM && about.max_class === maxClass) return indexDb(db);
    }
  } catch (thrown) {
    db.close();
    throw thrown;
  }
  db.close();
  return undefined;
}

/** Makes an empty index in a file that does not exist yet. */
export function createIndexDb(path: string, maxClass: DataClass): IndexDb {
  const db = new DatabaseSync(path);
  // Until it is whole and synced it is nobody's index; a crash leaves a file to throw away.
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  db.exec(TABLES);
  db.prepare("INSERT INTO about VALUES (?, ?)").run(INDEX_FORM, maxClass);
  return indexDb(db);
}

function isWhole(db: DatabaseSync): boolean {
  const check = db.prepare("PRAGMA quick_check(1)").get();
  db.exec("INSERT INTO words (words) VALUES ('integrity-check')");
  return check?.quick_check === "ok";
}

function digestOf(log: string, row: Row): string {
  const { record, part, timeUnixMs, who, tag, label, text } = row;
  const fields = [log, record, part, timeUnixMs, who, tag, label.class, label.untrusted, text];
  return hash("sha256", canonicalText(fields), "hex").slice(0, 24);
}

function foundRow(raw: unknown): Found {
  const stored: StoredRow = StoredRow.parse(raw);
  const label = { class: stored.class, untrusted: stored.untrusted === 1 };
  const { log, record, part, time, who, tag, text } = stored;
  const row = { log, record, part, timeUnixMs: time, who, tag, label, text };
  if (digestOf(log, row) !== stored.digest) throw new Error("A row of the index is damaged");
  return row;
}

/** A row with its id and its own words. */
type Placed = { readonly id: number; readonly row: Row; readonly own: string };

function placed(id: unknown, row: Row): Placed {
  return { id: Number(id), row, own: tokens(row.text).join(" ") };
}

/** The words of `lender` as `borrower` may have them. */
function lent(lender: Placed | undefined, borrower: Row): string {
  if (lender === undefined) return "";
  const covered = equalLabel(join(lender.row.label, borrower.label), borrower.label);
  return covered ? lender.own : "";
}

/** Tells the word index of rows from number `from` on: their own words and their neighbours'. */
function tellWords(how: StatementSync, log: string, rows: readonly Placed[], from: number): void {
  for (let i = Math.max(0, from); i < rows.length; i++) {
    const one = rows[i];
    if (one === undefined) continue;
    // Notes stand next to each other by chance.
    const near = log === "notes.md"
      ? ""
      : `${lent(rows[i - 1], one.row)} ${lent(rows[i + 1], one.row)}`;
    how.run(one.id, one.own, near);
  }
}

function indexDb(db: DatabaseSync): IndexDb {
  const q = statements(db);
  const kept = (raw: Record<string, unknown>): Placed => placed(raw.id, foundRow(raw));
  const put = (log: string, row: Row): Placed => {
    let id = firstId(log, row);
    while (q.taken.get(id) !== undefined) id++;
    const { record, part, timeUnixMs, who, tag, label, text } = row;
    const digest = digestOf(log, row);
    const untrusted = label.untrusted ? 1 : 0;
    q.insert.run(id, log, record, part, timeUnixMs, who, tag, label.class, untrusted, text, digest);
    return placed(id, row);
  };
  return {
    inOneStep: (change) => {
      db.exec("BEGIN IMMEDIATE");
      try {
        change();
        db.exec("COMMIT");
      } catch (thrown) {
        if (db.isTransaction) db.exec("ROLLBACK");
        throw thrown;
      }
    },
    add: (log, rows) => {
      if (rows.length === 0) return;
      const tail = q.tail.all(log).map(kept).reverse();
      // The last row had no next neighbour. The word index must be told exactly what it forgets.
      tellWords(q.forget, log, tail, tail.length - 1);
      tellWords(q.learn, log, [...tail, ...rows.map((row) => put(log, row))], tail.length - 1);
    },
    drop: (log) => {
      tellWords(q.forget, log, q.rows.all(log).map(kept), 0);
      q.dropRows.run(log);
      q.dropLog.run(log);
    },
    progress: (log) => {
      const found = q.progress.get(log);
      return found === undefined ? undefined : Progress.parse({ ...found });
    },
    setProgress: (log, p) => {
      q.setProgress.run(log, p.offset, p.next, p.prev, p.class, p.untrusted, p.problem);
    },
    logs: () => q.logs.all().map((row) => String(row.log)),
    problems: () =>
      q.problems.all().map((row) => ({ log: String(row.log), problem: String(row.problem) })),
    search: (terms, k) => {
      const query = matchQuery(tellingTerms(q.spread, terms));
      if (query === null) return [];
      return q.search.all(query, k).map((hit) => foundRow(q.row.get(Number(hit.id))));
    },
    counts: () =>
      z.object({ logs: z.int(), rows: z.int(), notes: z.int() }).parse({ ...q.counts.get() }),
    close: () => db.close(),
  };
}

/** The rarest terms, as many as one search may look through; the rarest of all in any case. */
function tellingTerms(spread: StatementSync, terms: Terms): Terms {
  const counted = terms.map((term) => ({
    term,
    rows: Number(spread.get(matchQuery([term]), MAX_ROWS + 1)?.n ?? 0),
  })).sort((a, b) => a.rows - b.rows);
  let sum = 0;
  return counted.filter(({ rows }, i) => {
    sum += rows;
    return i === 0 || sum <= MAX_ROWS;
  }).map(({ term }) => term);
}

function firstId(log: string, row: Row): number {
  const place = hash("sha256", canonicalText([log, row.record, row.part]), "buffer");
  const slot = place.readUInt16BE(0) % SLOTS;
  return Math.min(row.timeUnixMs, MAX_TIME) * SLOTS + slot;
}

function statements(db: DatabaseSync) {
  const one = (sql: string) => db.prepare(sql);
  return {
    taken: one("SELECT 1 FROM rows WHERE id = ?"),
    insert: one("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    rows: one("SELECT * FROM rows WHERE log = ? ORDER BY record, part"),
    tail: one("SELECT * FROM rows WHERE log = ? ORDER BY record DESC, part DESC LIMIT 2"),
    learn: one("INSERT INTO words (rowid, own, near) VALUES (?, ?, ?)"),
    forget: one("INSERT INTO words (words, rowid, own, near) VALUES ('delete', ?, ?, ?)"),
    dropRows: one("DELETE FROM rows WHERE log = ?"),
    dropLog: one("DELETE FROM logs WHERE log = ?"),
    progress: one("SELECT offset, next, prev, class, untrusted, problem FROM logs WHERE log = ?"),
    setProgress: one("INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?, ?)"),
    logs: one("SELECT log FROM logs ORDER BY log"),
    problems: one("SELECT log, problem FROM logs WHERE problem <> '' ORDER BY log LIMIT 200"),
    search: one(
      `SELECT rowid AS id, bm25(words, 1.0, ${NEAR_WEIGHT}) AS score FROM words WHERE words MATCH ?
       ORDER BY score, rowid DESC LIMIT ?`,
    ),
    spread: one("SELECT count(*) AS n FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"),
    row: one("SELECT * FROM rows WHERE id = ?"),
    counts: one(
      `SELECT (SELECT count(*) FROM logs WHERE log <> 'notes.md' AND problem = '') AS logs,
       (SELECT count(*) FROM rows WHERE log <> 'notes.md') AS rows,
       (SELECT count(*) FROM rows WHERE log = 'notes.md') AS notes`,
    ),
  };
}
