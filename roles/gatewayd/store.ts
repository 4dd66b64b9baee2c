// The durable queue, `{home}/queue/queue.db`: what the owner wrote and is not answered yet, and what is
// to be posted and is not known to be there yet. It holds nothing that is not drained in time.
//
// 1. A post is taken once, by its id, however often and by whatever way it comes.
// 2. What is to be posted has a key; putting the same key again changes nothing.
// 3. Each call is one transaction and is on the disk when it returns. What SQLite throws ends the role.
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { ApprovalId, MessageId, SessionId } from "../../shared/ids/ids.ts";

const TABLES = `
  PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS cursors (
    channel TEXT PRIMARY KEY, at INTEGER NOT NULL, floor INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS inbox (
    post TEXT PRIMARY KEY, channel TEXT NOT NULL, root TEXT NOT NULL, session TEXT NOT NULL,
    at INTEGER NOT NULL, edit_at INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    files TEXT NOT NULL, state TEXT NOT NULL, cancel INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX IF NOT EXISTS open_inbox ON inbox (session, at) WHERE state <> 'done';
  CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, is_what TEXT NOT NULL,
    channel TEXT NOT NULL, root TEXT NOT NULL, draft TEXT NOT NULL, item INTEGER NOT NULL,
    text TEXT NOT NULL, file TEXT NOT NULL, state TEXT NOT NULL, post TEXT NOT NULL DEFAULT '',
    pending TEXT NOT NULL DEFAULT '', tried_unix_ms INTEGER NOT NULL DEFAULT 0, put_unix_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS open_outbox ON outbox (channel, id) WHERE state IN ('new', 'tried');
  CREATE INDEX IF NOT EXISTS items ON outbox (item) WHERE item >= 0;
  CREATE TABLE IF NOT EXISTS threads (
    session TEXT PRIMARY KEY, channel TEXT NOT NULL, root TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS approvals (
    approval TEXT PRIMARY KEY, session TEXT NOT NULL, channel TEXT NOT NULL, root TEXT NOT NULL,
    last_key TEXT NOT NULL, code TEXT NOT NULL, expires_unix_ms INTEGER NOT NULL,
    is_open INTEGER NOT NULL
  ) STRICT;
`;

export const Inbound = z.object({
  post: MessageId,
  channel: z.string(),
  /** The post that begins the thread. */
  root: z.string(),
  session: SessionId,
  /** The server's times. */
  at: z.number(),
  edit_at: z.number(),
  kind: z.enum(["turn", "command", "skipped"]),
  text: z.string(),
  /** File ids, separated by blanks. */
  files: z.string(),
  state: z.enum(["new", "sent", "done"]),
  cancel: z.number(),
});
export type Inbound = z.output<typeof Inbound>;

export const Outbound = z.object({
  id: z.number(),
  key: z.string(),
  is_what: z.enum(["post", "react", "unreact"]),
  channel: z.string(),
  /** A post id, nothing, or `=KEY` for the post that another row made. For a reaction its post. */
  root: z.string(),
  /** Key of the draft that this replaces, or nothing. */
  draft: z.string(),
  /** Number of loopd's outbox item, -1 for none. */
  item: z.number(),
  text: z.string(),
  /** Text to attach as a file, or nothing. */
  file: z.string(),
  state: z.enum(["new", "tried", "done", "failed"]),
  post: z.string(),
  pending: z.string(),
  tried_unix_ms: z.number(),
});
export type Outbound = z.output<typeof Outbound>;

/** A row to put; what is left out is nothing. */
export type Put =
  & Pick<Outbound, "key" | "channel" | "root" | "text">
  & Partial<Pick<Outbound, "is_what" | "draft" | "item" | "file">>;

const Thread = z.object({ session: SessionId, channel: z.string(), root: z.string() });
const Asked = z.object({
  approval: ApprovalId,
  session: SessionId,
  channel: z.string(),
  root: z.string(),
  last_key: z.string(),
  code: z.string(),
  expires_unix_ms: z.number(),
});
export type Asked = z.output<typeof Asked>;

const Count = z.object({ n: z.number() });
const Cursor = z.object({ at: z.number(), floor: z.number() });
const DAY_MS = 86_400_000;
/** A text as it can be kept: read back, it would end at its first zero. */
const kept = (text: string) => text.replaceAll("\0", "\ufffd");

export type Store = ReturnType<typeof openStore>;

/** Opens or makes the queue. Throws what SQLite throws on a file that is not one. */
export function openStore(path: string, nowUnixMs: () => number) {
  const db = new DatabaseSync(path);
  db.exec(TABLES);
  const prepared = new Map<string, ReturnType<typeof db.prepare>>();
  const q = (sql: string) => {
    const known = prepared.get(sql) ?? db.prepare(sql);
    prepared.set(sql, known);
    return known;
  };
  const inbound = (where: string, ...values: (string | number)[]) =>
    z.array(Inbound).parse(q(`SELECT * FROM inbox WHERE ${where}`).all(...values));
  const outbound = (where: string, ...values: (string | number)[]) =>
    z.array(Outbound).parse(q(`SELECT * FROM outbox WHERE ${where}`).all(...values));
  const count = (from: string, ...values: (string | number)[]) =>
    Count.parse(q(`SELECT count(*) AS n FROM ${from}`).get(...values)).n;
  const step = <T>(change: () => T): T => {
    if (db.isTransaction) return change();
    db.exec("BEGIN IMMEDIATE");
    try {
      const value = change();
      db.exec("COMMIT");
      return value;
    } catch (thrown) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw thrown;
    }
  };
  return {
    step,
    close: () => db.close(),
    ...inboxOf(q, inbound, count),
    ...outboxOf(q, outbound, count, nowUnixMs),
    ...placesOf(q),
    /** Forgets what ended long before the cursors. */
    prune(): void {
      const old = nowUnixMs() - 30 * DAY_MS;
      step(() => {
        q(
          `DELETE FROM inbox WHERE state = 'done' AND at < (
             SELECT min(at) FROM cursors) - ${DAY_MS}`,
        ).run();
        q(
          `DELETE FROM outbox WHERE state IN ('done', 'failed') AND put_unix_ms < ?
             AND key <> 'notices'`,
        ).run(old);
        q("DELETE FROM approvals WHERE expires_unix_ms < ?").run(old);
      });
    },
  };
}

type Query = (sql: string) => ReturnType<DatabaseSync["prepare"]>;
type Select<T> = (where: string, ...values: (string | number)[]) => T[];
type Counting = (from: string, ...values: (string | number)[]) => number;

function inboxOf(q: Query, rows: Select<Inbound>, count: Counting) {
  return {
    inboxRow: (post: string): Inbound | undefined => rows("post = ?", post)[0],
    /** Takes a post; one that is known changes nothing. */
    take(row: Omit<Inbound, "cancel">): boolean {
      const { post, channel, root, session, at, edit_at, kind, text, files, state } = row;
      const done = q("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)")
        .run(post, channel, root, session, at, edit_at, kind, kept(text), files, state);
      if (done.changes === 0) return false;
      q("INSERT OR IGNORE INTO threads VALUES (?, ?, ?)").run(session, channel, root);
      return true;
    },
    setInbox(post: string, state: Inbound["state"]): void {
      q("UPDATE inbox SET state = ? WHERE post = ?").run(state, post);
    },
    editInbox(post: string, text: string, files: string, editAt: number): void {
      q("UPDATE inbox SET text = ?, files = ?, edit_at = ? WHERE post = ? AND state = 'new'")
        .run(kept(text), files, editAt, post);
    },
    wishCancel(post: string): void {
      q("UPDATE inbox SET cancel = 1 WHERE post = ?").run(post);
    },
    commands: () => rows("kind = 'command' AND state = 'new' ORDER BY at, post"),
    /** Turns that wait or run, oldest first; of one session or of all. */
    turns: (session: string | null) =>
      rows("kind = 'turn' AND state <> 'done' ORDER BY at, post")
        .filter((row) => session === null || row.session === session),
    /** Turns that nobody has been given and that a deletion of `post` takes away. */
    takenAwayBy: (post: string) =>
      rows("kind = 'turn' AND state = 'new' AND (post = ? OR root = ?)", post, post),
    /** Messages that are not answered yet; orders are not among them. */
    waiting: () => count("inbox WHERE state <> 'done' AND kind = 'turn'"),
  };
}

function outboxOf(q: Query, rows: Select<Outbound>, count: Counting, nowUnixMs: () => number) {
  const outbox = {
    outboxRow: (key: string): Outbound | undefined => rows("key = ?", key)[0],
    put(row: Put): void {
      const { key, channel, root, text, is_what = "post", draft = "", item = -1, file = "" } = row;
      q(
        `INSERT OR IGNORE INTO outbox
           (key, is_what, channel, root, draft, item, text, file, state, put_unix_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'new', ?)`,
      ).run(key, is_what, channel, root, draft, item, kept(text), kept(file), nowUnixMs());
    },
    nextOut: (channel: string): Outbound | undefined =>
      rows("channel = ? AND state IN ('new', 'tried') ORDER BY id LIMIT 1", channel)[0],
    /** Remembers, before it is sent, that it may arrive. */
    trying(id: number, pending: string): void {
      q("UPDATE outbox SET state = 'tried', pending = ?, tried_unix_ms = ? WHERE id = ?")
        .run(pending, nowUnixMs(), id);
    },
    posted(key: string, post: string): void {
      q("UPDATE outbox SET state = 'done', post = ?, text = '', file = '' WHERE key = ?")
        .run(post, key);
    },
    /** Cuts a row that is not there anew: these texts stand in its place, before what waits behind it. */
    cut(
      { id, key, channel, root, item }: Outbound,
      [first = "", ...more]: readonly string[],
    ): void {
      const newest = () => Count.parse(q("SELECT max(id) AS n FROM outbox").get()).n;
      const before = newest();
      let last = key;
      for (const [i, text] of more.entries()) {
        last = `${key}-${before + i}`;
        outbox.put({ key: last, channel, root: root === "" ? `=${key}` : root, text, item });
      }
      q(
        `UPDATE outbox SET id = id + ?
           WHERE channel = ? AND id > ? AND id <= ? AND state IN ('new', 'tried')`,
      ).run(newest() - id, channel, id, before);
      q("UPDATE outbox SET text = ?, state = 'new' WHERE id = ?").run(first, id);
      q("UPDATE approvals SET last_key = ? WHERE last_key = ?").run(last, key);
    },
    failed: (id: number) => void q("UPDATE outbox SET state = 'failed' WHERE id = ?").run(id),
    /** It becomes a post of its own, where it was to replace a draft or to stand in a thread. */
    redirect(id: number, root: string): void {
      q("UPDATE outbox SET draft = '', root = ?, state = 'new' WHERE id = ?").run(root, id);
    },
    outChannels: () =>
      z.array(z.object({ channel: z.string() })).parse(
        q("SELECT DISTINCT channel FROM outbox WHERE state IN ('new', 'tried')").all(),
      ).map((row) => row.channel),
    isItemOpen: (item: number) =>
      count("outbox WHERE item = ? AND state IN ('new', 'tried')", item) > 0,
    unsent: () => count("outbox WHERE state IN ('new', 'tried')"),
  };
  return outbox;
}

function placesOf(q: Query) {
  const asked = z.array(Asked);
  return {
    cursor: (channel: string) =>
      Cursor.optional().parse(q("SELECT * FROM cursors WHERE channel = ?").get(channel)),
    /** Moves the cursor; the first one is also the floor, below which nothing is ever taken. */
    setCursor(channel: string, at: number): void {
      q(
        `INSERT INTO cursors VALUES (?, ?, ?)
         ON CONFLICT (channel) DO UPDATE SET at = excluded.at`,
      ).run(channel, at, at);
    },
    thread: (session: string) =>
      Thread.optional().parse(q("SELECT * FROM threads WHERE session = ?").get(session)),
    bindThread: (session: string, channel: string, root: string) =>
      void q("INSERT OR IGNORE INTO threads VALUES (?, ?, ?)").run(session, channel, root),
    /** Questions that nobody said to be over. */
    openAsked: () => asked.parse(q("SELECT * FROM approvals WHERE is_open = 1").all()),
    asked: (approval: string) =>
      Asked.optional().parse(q("SELECT * FROM approvals WHERE approval = ?").get(approval)),
    allAsked: () => asked.parse(q("SELECT * FROM approvals").all()),
    putAsked(row: Asked): void {
      const { approval, session, channel, root, last_key, code, expires_unix_ms } = row;
      q("INSERT OR IGNORE INTO approvals VALUES (?, ?, ?, ?, ?, ?, ?, 1)")
        .run(approval, session, channel, root, last_key, code, expires_unix_ms);
    },
    closeAsked: (approval: string) =>
      void q("UPDATE approvals SET is_open = 0 WHERE approval = ?").run(approval),
  };
}
