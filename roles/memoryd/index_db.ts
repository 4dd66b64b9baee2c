// The recall index as a database: its tables, one way in for rows, one way out for hits.
//
// 1. A row's id is made of its time and place alone, so an index built anew has the same ids, and the
//    newest of equal hits comes first by comparing ids.
// 2. Each row carries a digest of itself, checked when it is shown: a damaged label is never believed.
// 3. A row lends its words to the two rows after it and the one before, in the same log, and only
//    where that makes none seem cleaner: the lender's label must be covered by the borrower's. A scene
//    is up to 24 rows that follow each other in a log under one label; a note is a scene of its own.
// Everything here may throw what SQLite throws; the index is disposable and its keeper rebuilds it.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { hash } from "node:crypto";
import { z } from "zod";
import { coversLabel, DataClass, equalLabel } from "../../shared/labels/label.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import { kindsOf } from "./kinds.ts";
import { originalsFirst, ranker } from "./ranking.ts";
import { dayWords, nameParts, type Terms, tokens } from "./words.ts";

/** Changes whenever tables, folding or ids do: an index of another form is built anew. */
const INDEX_FORM = "6";

/** The name under which notes.md stands among the logs. */
export const NOTES_LOG = "notes.md";

const flag = z.union([z.boolean(), z.int().transform((bit) => bit === 1)]);

/** One text that can be found. `class` and `untrusted` are its label. */
export const Row = z.object({
  /** `<session>/<epoch>` or `notes.md`. */
  log: z.string().max(200),
  /** Record number in a session log, note number in notes.md. */
  record: z.int().min(0),
  /** 0 for the text of a record, 1 and up for its calls. */
  part: z.int().min(0),
  time_unix_ms: z.int().min(0),
  who: z.string().max(64),
  tag: z.enum(["experience", "identity"]),
  class: DataClass,
  untrusted: flag,
  text: z.string(),
});
export type Row = z.output<typeof Row>;

const Stored = Row.extend({ id: z.int(), scene: z.int(), digest: z.string() });

/** Where reading of a log stands, and the label there: everything before `offset` is in the index. */
export const Progress = z.object({
  offset: z.int().min(0),
  /** Number and previous hash that the next record must have; heads seen, for notes.md. */
  next: z.int().min(0),
  prev: z.string(),
  class: DataClass,
  untrusted: flag,
  /** Why the log was skipped, empty when it was not. */
  problem: z.string(),
});
export type Progress = z.output<typeof Progress>;

const count = z.int().min(0);

/** `skipped` names each log that was skipped, with the reason. */
export const Counts = z.strictObject({
  logs: count,
  rows: count,
  notes: count,
  skipped: z.array(z.string().max(1_000)).max(200),
});
export type Counts = z.output<typeof Counts>;

const TOKENIZER = `"porter unicode61 remove_diacritics 2 categories 'L* M* N* S* C*'"`;
const TABLES = `
  CREATE TABLE about (form TEXT NOT NULL, max_class TEXT NOT NULL) STRICT;
  CREATE TABLE logs (
    log TEXT PRIMARY KEY, offset INTEGER NOT NULL, next INTEGER NOT NULL, prev TEXT NOT NULL,
    class TEXT NOT NULL, untrusted INTEGER NOT NULL, problem TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE rows (
    id INTEGER PRIMARY KEY, scene INTEGER NOT NULL, log TEXT NOT NULL, record INTEGER NOT NULL,
    part INTEGER NOT NULL, time_unix_ms INTEGER NOT NULL, who TEXT NOT NULL, tag TEXT NOT NULL,
    class TEXT NOT NULL, untrusted INTEGER NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX places ON rows (log, record, part);
  CREATE VIRTUAL TABLE words USING fts5 (own, near, kinds, content = '', tokenize = ${TOKENIZER});
  CREATE VIRTUAL TABLE scenes USING fts5 (own, days, kinds, content = '', tokenize = ${TOKENIZER});
`;

const SCENE_ROWS = 24;
/** Rows beyond those asked for in which the original of a quoting one is looked for. */
const ECHOES = 20;
const SLOTS = 1_024;
const CHECK_ROWS = 2_000;
const MAX_TIME = 2 ** 42;

export type IndexDb = ReturnType<typeof indexDb>;

/**
 * Opens an index file of this form and class limit; undefined when it is another or none. That it is
 * whole is not looked at: its keeper knows, or builds it anew.
 */
export function openIndexDb(path: string, maxClass: DataClass): IndexDb | undefined {
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const tables = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'about'").get();
    const about = tables?.n === 1 ? db.prepare("SELECT * FROM about").get() : undefined;
    if (about?.form === INDEX_FORM && about.max_class === maxClass) return indexDb(db);
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
  db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; ${TABLES}`);
  db.prepare("INSERT INTO about VALUES (?, ?)").run(INDEX_FORM, maxClass);
  return indexDb(db);
}

function isWhole(db: DatabaseSync): boolean {
  const check = db.prepare("PRAGMA quick_check(1)").get();
  for (const table of ["words", "scenes"]) {
    db.exec(`INSERT INTO ${table} (${table}) VALUES ('integrity-check')`);
  }
  return check?.quick_check === "ok";
}

function digestOf(row: Row): string {
  const { log, record, part, time_unix_ms, who, tag, text } = row;
  const fields = [log, record, part, time_unix_ms, who, tag, row.class, row.untrusted, text];
  return hash("sha256", canonicalText(fields), "hex").slice(0, 24);
}

/** A row with its id, the id of its scene (that of its first row) and its own words. */
type Placed = {
  readonly id: number;
  readonly scene: number;
  readonly row: Row;
  readonly own: string;
  readonly kinds: string;
};

function placedAt(id: number, scene: number, row: Row): Placed {
  const words = tokens(row.text);
  const own = [...words, ...nameParts(row.text)].join(" ");
  return { id, scene, row, own, kinds: kindsOf(words).join(" ") };
}

function checked(raw: unknown): z.output<typeof Stored> {
  const found = Stored.parse(raw);
  if (digestOf(found) !== found.digest) throw new Error("A row of the index is damaged");
  return found;
}

function placed(raw: unknown): Placed {
  const { id, scene, digest: _digest, ...row } = checked(raw);
  return placedAt(id, scene, row);
}

/** The words of `lender` as `borrower` may have them. */
function lent(lender: Placed | undefined, borrower: Row): string {
  return lender !== undefined && coversLabel(borrower, lender.row) ? lender.own : "";
}

/** Tells the word index of rows from number `from` on: their own words and their neighbours'. */
function tellWords(how: StatementSync, rows: readonly Placed[], from: number): void {
  for (let i = Math.max(0, from); i < rows.length; i++) {
    const one = rows[i];
    if (one === undefined) continue;
    const near = [rows[i - 2], rows[i - 1], rows[i + 1]].map((lender) => lent(lender, one.row));
    // Notes stand next to each other by chance.
    how.run(one.id, one.own, one.row.log === NOTES_LOG ? "" : near.join(" "), one.kinds);
  }
}

/** Tells the scene index of whole scenes. */
function tellScenes(how: StatementSync, rows: readonly Placed[]): void {
  for (const [scene, members] of Map.groupBy(rows, (one) => one.scene)) {
    const days = new Set(members.map((one) => dayWords(one.row.time_unix_ms)));
    const all = (part: "own" | "kinds") => members.map((one) => one[part]).join(" ");
    how.run(scene, all("own"), [...days].join(" "), all("kinds"));
  }
}

/** The scene that a row joins which follows `before`; undefined when it begins one. */
function sceneAfter(before: readonly Placed[], row: Row): number | undefined {
  const last = before.at(-1);
  if (last === undefined || row.log === NOTES_LOG || !equalLabel(last.row, row)) return undefined;
  const size = before.slice(-SCENE_ROWS).filter((one) => one.scene === last.scene).length;
  return size < SCENE_ROWS ? last.scene : undefined;
}

function indexDb(db: DatabaseSync) {
  const q = statements(db);
  const rank = ranker(db);
  const put = (given: Row, before: readonly Placed[]): Placed => {
    // SQLite would end the text at its first zero character.
    const row = { ...given, text: given.text.replaceAll("\0", "\ufffd") };
    let id = firstId(row);
    while (q.row.get(id) !== undefined) id++;
    const scene = sceneAfter(before, row) ?? id;
    q.insert.run({ ...row, untrusted: Number(row.untrusted), id, scene, digest: digestOf(row) });
    return placedAt(id, scene, row);
  };
  return {
    /** Runs `change` in one transaction: all of it is kept or none. */
    inOneStep: (change: () => void): void => {
      db.exec("BEGIN IMMEDIATE");
      try {
        change();
        db.exec("COMMIT");
      } catch (thrown) {
        if (db.isTransaction) db.exec("ROLLBACK");
        throw thrown;
      }
    },
    /** Adds rows that follow all rows of their log, `log`. */
    add: (log: string, rows: readonly Row[]): void => {
      if (rows.length === 0) return;
      const all = q.tail.all(log, log === NOTES_LOG ? 1 : SCENE_ROWS).map(placed).reverse();
      const known = all.length;
      const open = all.at(-1)?.scene;
      // The last row had no next neighbour. The word indexes must be told exactly what they forget.
      tellWords(q.forget, all, known - 1);
      tellScenes(q.forgetScene, all.filter((one) => one.scene === open));
      for (const row of rows) all.push(put(row, all));
      tellWords(q.learn, all, known - 1);
      tellScenes(q.learnScene, all.filter((one, i) => i >= known || one.scene === open));
    },
    /** Forgets a log and what was read from it. */
    drop: (log: string): void => {
      const all = q.rows.all(log).map(placed);
      tellWords(q.forget, all, 0);
      tellScenes(q.forgetScene, all);
      q.dropRows.run(log);
      q.dropLog.run(log);
    },
    progress: (log: string) => Progress.optional().parse(q.progress.get(log)),
    setProgress: (log: string, progress: Progress): void => {
      q.setProgress.run({ log, ...progress, untrusted: Number(progress.untrusted) });
    },
    logs: () => q.logs.all().map((row) => String(row.log)),
    /** The best `k` rows for a question's terms. Throws when a row is not what was stored. */
    search: (terms: Terms, k: number): Row[] =>
      originalsFirst(rank(terms, k + ECHOES).map((id) => Row.parse(checked(q.row.get(id))))).slice(
        0,
        k,
      ),
    counts: (): Counts => {
      const skipped = q.skipped.all().map((row) => `${row.log}: ${row.problem}`);
      return Counts.parse({ ...q.size.get(), skipped });
    },
    /** Looks at all of it, pausing after each step; throws what is wrong. */
    *check(): Generator<void> {
      if (!isWhole(db)) throw new Error("SQLite finds it damaged");
      yield;
      let rows = 0;
      for (let last = -1;;) {
        const step = q.after.all(last, CHECK_ROWS).map(checked);
        if (step.length === 0) break;
        rows += step.length;
        last = step.at(-1)?.id ?? last;
        yield;
      }
      if (rows !== q.words.get()?.n) throw new Error("It has not the words of every text");
    },
    close: () => db.close(),
  };
}

function firstId(row: Row): number {
  const place = hash("sha256", canonicalText([row.log, row.record, row.part]), "buffer");
  return Math.min(row.time_unix_ms, MAX_TIME) * SLOTS + place.readUInt16BE(0) % SLOTS;
}

function statements(db: DatabaseSync) {
  const one = (sql: string) => db.prepare(sql);
  return {
    insert: one(
      `INSERT INTO rows VALUES
       (:id, :scene, :log, :record, :part, :time_unix_ms, :who, :tag, :class, :untrusted, :text, :digest)`,
    ),
    row: one("SELECT * FROM rows WHERE id = ?"),
    rows: one("SELECT * FROM rows WHERE log = ? ORDER BY record, part"),
    after: one("SELECT * FROM rows WHERE id > ? ORDER BY id LIMIT ?"),
    words: one("SELECT count(*) AS n FROM words"),
    tail: one("SELECT * FROM rows WHERE log = ? ORDER BY record DESC, part DESC LIMIT ?"),
    learn: one("INSERT INTO words (rowid, own, near, kinds) VALUES (?, ?, ?, ?)"),
    forget: one("INSERT INTO words (words, rowid, own, near, kinds) VALUES ('delete', ?, ?, ?, ?)"),
    learnScene: one("INSERT INTO scenes (rowid, own, days, kinds) VALUES (?, ?, ?, ?)"),
    forgetScene: one(
      "INSERT INTO scenes (scenes, rowid, own, days, kinds) VALUES ('delete', ?, ?, ?, ?)",
    ),
    dropRows: one("DELETE FROM rows WHERE log = ?"),
    dropLog: one("DELETE FROM logs WHERE log = ?"),
    progress: one("SELECT * FROM logs WHERE log = ?"),
    setProgress: one(
      "INSERT OR REPLACE INTO logs VALUES (:log, :offset, :next, :prev, :class, :untrusted, :problem)",
    ),
    logs: one("SELECT log FROM logs ORDER BY log"),
    skipped: one("SELECT log, problem FROM logs WHERE problem <> '' ORDER BY log LIMIT 200"),
    size: one(
      `SELECT
       (SELECT count(*) FROM logs WHERE log <> '${NOTES_LOG}' AND problem = '') AS logs,
       (SELECT count(*) FROM rows WHERE log <> '${NOTES_LOG}') AS rows,
       (SELECT count(*) FROM rows WHERE log = '${NOTES_LOG}') AS notes`,
    ),
  };
}
