// Keeps the index usable: opens it, brings it up to date, answers from it, and builds it anew when it
// is missing, of another form or damaged.
//
// 1. Changes happen one after another; a search waits for none of them while there is a whole index.
// 2. While there is none, a search waits a little and then answers from what is built so far.
// 3. What the list of purges names is not found, even before it could be taken out.
// 4. An index without its seal (after a crash) is used at once and built anew in the background: no
//    check of SQLite's notices every changed byte.
import { type Clock, inTime } from "../../shared/clock/clock.ts";
import { err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { breakSeal, clearIndex, exchangeIndex, sealIndex } from "./index_build.ts";
import { type Counts, createIndexDb, type IndexDb, openIndexDb } from "./index_db.ts";
import type { Hits, Index, OnStep } from "./index_messages.ts";
import {
  knowsPurges,
  readAll,
  readNotes,
  readSession,
  type Sources,
  type Step,
} from "./index_reading.ts";
import { snippet } from "./snippet.ts";
import { termsOf } from "./words.ts";

const PATIENCE_MS = 6_000;
const RETRY_MS = 60_000;
/** What SQLite calls a lack of room; its number does not come along with every failure. */
const FULL = "database or disk is full";

export type KeeperPlace = Sources & {
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Hears of work that takes long, step by step. */
  readonly onStep: OnStep;
};

type Keeper = KeeperPlace & {
  readonly path: string;
  whole: IndexDb | undefined;
  building: IndexDb | undefined;
  isClosed: boolean;
  /** Whether every byte of `whole` is known to be right. */
  isSure: boolean;
  /** Whether something new was not read for want of room. */
  isBehind: boolean;
  /** Before this time no index is built where none could be. */
  retryMs: number;
  /** The last change under way; the next one waits for it. */
  last: Promise<unknown>;
  /** Settled when the index is whole and has what was there at the start. */
  ready: Promise<void>;
};

/** Opens the index and starts to bring it up to date. */
export function openKeeper(at: KeeperPlace): Index {
  const path = `${at.home}/index/memory.sqlite3`;
  const done = Promise.resolve();
  const none = { whole: undefined, building: undefined, isClosed: false, isSure: false };
  const start = { isBehind: false, retryMs: 0, last: done, ready: done };
  const my: Keeper = { ...at, path, ...none, ...start };
  try {
    my.whole = opened(my);
    my.ready = my.whole === undefined ? rebuild(my) : update(my, (db) => readAll(db, my));
    if (my.whole !== undefined && !my.isSure) void rebuild(my);
  } catch (thrown) {
    lose(my, thrown);
  }
  return {
    search: (question, k) => search(my, question, k),
    update: (session) =>
      update(my, function* (db) {
        if (session === null) readNotes(db, my);
        else yield* readSession(db, my, session);
      }),
    reindex: (onStep) =>
      inTurn(my, async () => {
        const built = await build(my, onStep);
        return built.ok ? countsOf(my.whole) : built;
      }),
    counts: () => Promise.resolve(countsOf(my.whole ?? my.building)),
    check: () => inTurn(my, () => check(my)),
    close: () => Promise.resolve(close(my)),
  };
}

function opened(my: Keeper): IndexDb | undefined {
  const seal = breakSeal(my.disk, my.path);
  if (!seal.ok) throw new Error(seal.detail);
  if (seal.value === "broken") throw new Error("It is not as it was when it was closed");
  my.isSure = seal.value === "whole";
  return openIndexDb(my.path, my.maxClass);
}

function inTurn<T>(my: Keeper, change: () => Promise<T>): Promise<T> {
  const turn = my.last.then(change);
  my.last = turn.catch(() => {});
  return turn;
}

async function run(my: Keeper, steps: Generator<Step>, db: IndexDb, hear: OnStep): Promise<void> {
  for (const step of steps) {
    hear({ ...step, records: db.counts().rows });
    await my.clock.sleep(0);
    if (my.isClosed) return;
  }
}

/** Lets go of an index that is damaged, and has it built anew. */
function lose(my: Keeper, thrown: unknown): void {
  my.log(`The index is damaged and will be built anew: ${messageOf(thrown)}`);
  closeQuietly(my.whole);
  my.whole = undefined;
  my.ready = rebuild(my);
}

function update(my: Keeper, steps: (db: IndexDb) => Generator<Step>): Promise<void> {
  return inTurn(my, async () => {
    if (my.whole === undefined) return await retry(my);
    const news = my.isBehind ? readAll(my.whole, my) : steps(my.whole);
    my.isBehind = true;
    try {
      await run(my, news, my.whole, my.onStep);
      my.isBehind = false;
    } catch (thrown) {
      // A disk without room damages nothing: all of a change is kept or none.
      if (!messageOf(thrown).includes(FULL)) return lose(my, thrown);
      my.log(`The index could not be brought up to date: ${messageOf(thrown)}`);
    }
  });
}

function rebuild(my: Keeper): Promise<void> {
  return inTurn(my, () => restore(my));
}

/** What kept an index from being built may be gone. */
async function retry(my: Keeper): Promise<void> {
  const nowMs = my.clock.monotonicMs();
  if (nowMs < my.retryMs) return;
  my.retryMs = nowMs + RETRY_MS;
  await restore(my);
}

async function restore(my: Keeper): Promise<void> {
  if (my.whole !== undefined && my.isSure || my.isClosed) return;
  const built = await build(my, my.onStep);
  if (!built.ok) my.log(`The index could not be built: ${built.detail}`);
}

async function check(my: Keeper): Promise<Result<null>> {
  try {
    if (my.whole === undefined) throw new Error("There is none");
    for (const _ of my.whole.check()) {
      my.onStep({ logs: 0, total_logs: 0, records: 0 });
      await my.clock.sleep(0);
      if (my.isClosed) return err("peer-down", "memoryd is stopping");
    }
    return ok(null);
  } catch (thrown) {
    lose(my, thrown);
    const detail = `The index was damaged and is built anew: ${messageOf(thrown)}`;
    return err("memory-index-damaged", detail);
  }
}

async function build(my: Keeper, hear: OnStep): Promise<Result<void>> {
  const fresh = `${my.path}.new`;
  try {
    const cleared = clearIndex(my.disk, fresh);
    if (!cleared.ok) return cleared;
    const db = createIndexDb(fresh, my.maxClass);
    my.building = db;
    await run(my, readAll(db, my), db, hear);
    if (my.isClosed) return err("memory-index-damaged", "memoryd is stopping");
    // What came in meanwhile, without a pause, so that nothing is between this and the exchange.
    for (const _ of readAll(db, my));
    db.close();
    const isFit = my.whole !== undefined;
    closeQuietly(my.whole);
    my.whole = undefined;
    const placed = exchangeIndex(my.disk, fresh, my.path);
    // Where the new one could not take its place, the old one goes on, unless it was let go of.
    if (placed.ok || isFit) my.whole = openIndexDb(my.path, my.maxClass);
    if (!placed.ok) return placed;
    my.isSure = my.whole !== undefined;
    my.isBehind = false;
    return my.isSure ? ok(undefined) : err("memory-index-damaged", "The new index is not whole");
  } catch (thrown) {
    return err("memory-index-damaged", messageOf(thrown));
  } finally {
    closeQuietly(my.building);
    my.building = undefined;
    // What is left of one that failed only takes room; the next one clears it too.
    clearIndex(my.disk, fresh);
  }
}

async function search(my: Keeper, question: string, k: number): Promise<Result<Hits>> {
  const terms = termsOf(question);
  if (terms.length === 0) return ok({ hits: [], partial: false });
  for (let attempts = 0; attempts < 2; attempts++) {
    const isReady = await inTime(my.clock, my.ready.then(() => true), PATIENCE_MS, false);
    const db = my.whole ?? my.building;
    if (db === undefined) break;
    try {
      if (!knowsPurges(db, my)) {
        my.ready = update(my, (db) => readAll(db, my));
        continue;
      }
      const hits = db.search(terms, k)
        .map(({ text, ...row }) => ({ ...row, snippet: snippet(text, terms) }));
      return ok({ hits, partial: !isReady || my.whole === undefined });
    } catch (thrown) {
      lose(my, thrown);
    }
  }
  return err(
    "memory-index-damaged",
    "No index knows every purge, or there is none; see memoryd's log",
  );
}

function countsOf(db: IndexDb | undefined): Result<Counts> {
  if (db === undefined) return err("memory-index-damaged", "There is no index");
  try {
    return ok(db.counts());
  } catch (thrown) {
    return err("memory-index-damaged", messageOf(thrown));
  }
}

function close(my: Keeper): void {
  const { whole } = my;
  my.isClosed = true;
  my.whole = undefined;
  if (whole === undefined || !closeQuietly(whole) || !my.isSure) return;
  const sealed = sealIndex(my.disk, my.path);
  if (!sealed.ok) my.log(`The index could not be sealed: ${sealed.detail}`);
}

/** Whether it could be closed. */
function closeQuietly(db: IndexDb | undefined): boolean {
  try {
    db?.close();
    return true;
  } catch {
    // It is closed already, or so damaged that closing fails; nobody will use it again.
    return false;
  }
}
