// Keeps the index usable: opens it, brings it up to date, answers from it, and builds it anew when it
// is missing, of another form or damaged.
//
// 1. Changes happen one after another; a search waits for none of them while there is a whole index.
// 2. While there is none, a search waits a little and then answers from what is built so far.
// 3. An index without its seal (after a crash) is used at once and built anew in the background: no
//    check of SQLite's notices every changed byte.
import type { Clock } from "../../shared/clock/clock.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import { err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { breakSeal, clearIndex, exchangeIndex, sealIndex } from "./index_build.ts";
import { createIndexDb, type IndexDb, openIndexDb, type Row } from "./index_db.ts";
import type { Counts, Hit, Hits, Progressed } from "./index_messages.ts";
import { readAll, readNotes, readSession, type Sources, type Step } from "./index_reading.ts";
import { snippet } from "./snippet.ts";
import { type Terms, termsOf } from "./words.ts";

const PATIENCE_MS = 6_000;

export type OnStep = (step: Progressed) => void;

export type KeeperPlace = Sources & {
  readonly clock: Clock;
  /** The existing folder `index/`. */
  readonly folder: string;
  readonly log: (line: string) => void;
  /** Hears of work that takes long, step by step. */
  readonly onStep: OnStep;
};

export interface IndexKeeper {
  search(question: string, k: number): Promise<Result<Hits>>;
  /** Reads what is new of a session, or of notes.md when it is null. */
  update(session: SessionId | null): Promise<void>;
  /** Builds the index anew while the old one goes on answering. */
  reindex(onStep: OnStep): Promise<Result<Counts>>;
  counts(): Result<Counts>;
  /** Looks at all of the index; what is damaged is named and built anew. */
  check(onStep: OnStep): Promise<Result<null>>;
  close(): void;
}

type State = {
  whole: IndexDb | undefined;
  building: IndexDb | undefined;
  isClosed: boolean;
  /** Whether every byte of `whole` is known to be right. */
  isSure: boolean;
  /** The last change under way; the next one waits for it. */
  last: Promise<unknown>;
  /** Settled when the index is whole and has what was there at the start. */
  ready: Promise<void>;
};

/** Opens the index and starts to bring it up to date. */
export function openKeeper(at: KeeperPlace): IndexKeeper {
  const done = Promise.resolve();
  const state: State = {
    whole: undefined,
    building: undefined,
    isClosed: false,
    isSure: false,
    last: done,
    ready: done,
  };
  try {
    state.whole = opened(at, state);
  } catch (thrown) {
    lose(at, state, thrown);
  }
  state.ready = state.whole === undefined
    ? rebuild(at, state)
    : update(at, state, (db) => readAll(db, at));
  if (state.whole !== undefined && !state.isSure) void rebuild(at, state);
  return {
    search: (question, k) => search(at, state, question, k),
    update: (session) =>
      update(at, state, function* (db) {
        if (session === null) readNotes(db, at);
        else yield* readSession(db, at, session);
      }),
    reindex: (onStep) =>
      inTurn(state, async () => {
        const built = await build(at, state, onStep);
        return built.ok ? countsOf(state.whole) : built;
      }),
    counts: () => countsOf(state.whole ?? state.building),
    check: async (onStep) => {
      const found = await inTurn(state, () => check(at, state, onStep));
      if (!found.ok && state.whole === undefined) state.ready = rebuild(at, state);
      return found;
    },
    close: () => {
      if (state.isClosed) return;
      state.isClosed = true;
      const whole = state.whole;
      state.whole = undefined;
      if (whole === undefined || !closeQuietly(whole) || !state.isSure) return;
      const sealed = sealIndex(at.disk, pathOf(at));
      if (!sealed.ok) at.log(`The index could not be sealed: ${sealed.detail}`);
    },
  };
}

function opened(at: KeeperPlace, state: State): IndexDb | undefined {
  const seal = breakSeal(at.disk, pathOf(at));
  if (!seal.ok) throw new Error(seal.detail);
  if (seal.value === "broken") throw new Error("It is not as it was when it was closed");
  state.isSure = seal.value === "whole";
  return openIndexDb(pathOf(at), at.maxClass);
}

function pathOf(at: KeeperPlace): string {
  return `${at.folder}/memory.sqlite3`;
}

function inTurn<T>(state: State, change: () => Promise<T>): Promise<T> {
  const turn = state.last.then(change);
  state.last = turn.catch(() => {});
  return turn;
}

async function run(
  at: KeeperPlace,
  state: State,
  steps: Generator<Step>,
  db: IndexDb,
  hear: OnStep,
) {
  for (const step of steps) {
    hear({ logs: step.logs, total_logs: step.totalLogs, records: db.size().rows });
    await at.clock.sleep(0);
    if (state.isClosed) return;
  }
}

function lose(at: KeeperPlace, state: State, thrown: unknown): void {
  at.log(`The index is damaged and will be built anew: ${messageOf(thrown)}`);
  closeQuietly(state.whole);
  state.whole = undefined;
}

function update(
  at: KeeperPlace,
  state: State,
  steps: (db: IndexDb) => Generator<Step>,
): Promise<void> {
  return inTurn(state, async () => {
    if (state.whole === undefined) return;
    try {
      await run(at, state, steps(state.whole), state.whole, at.onStep);
    } catch (thrown) {
      lose(at, state, thrown);
      state.ready = rebuild(at, state);
    }
  });
}

function rebuild(at: KeeperPlace, state: State): Promise<void> {
  return inTurn(state, async () => {
    if (state.whole !== undefined && state.isSure || state.isClosed) return;
    const built = await build(at, state, at.onStep);
    if (!built.ok) at.log(`The index could not be built: ${built.detail}`);
  });
}

async function check(at: KeeperPlace, state: State, hear: OnStep): Promise<Result<null>> {
  const db = state.whole;
  if (db === undefined) return err("memory-index-damaged", "There is no index yet");
  try {
    for (const _ of db.check()) {
      hear({ logs: 0, total_logs: 0, records: 0 });
      await at.clock.sleep(0);
      if (state.isClosed) return err("peer-down", "memoryd is stopping");
    }
    return ok(null);
  } catch (thrown) {
    lose(at, state, thrown);
    const detail = `The index was damaged and is built anew: ${messageOf(thrown)}`;
    return err("memory-index-damaged", detail);
  }
}

async function build(at: KeeperPlace, state: State, hear: OnStep): Promise<Result<void>> {
  const fresh = `${pathOf(at)}.new`;
  try {
    const cleared = clearIndex(at.disk, fresh);
    if (!cleared.ok) return cleared;
    const db = createIndexDb(fresh, at.maxClass);
    state.building = db;
    await run(at, state, readAll(db, at), db, hear);
    if (state.isClosed) return err("memory-index-damaged", "memoryd is stopping");
    // What came in meanwhile, without a pause, so that nothing is between this and the exchange.
    for (const _ of readAll(db, at));
    db.close();
    closeQuietly(state.whole);
    state.whole = undefined;
    const placed = exchangeIndex(at.disk, at.folder, fresh, pathOf(at));
    if (!placed.ok) return placed;
    state.whole = openIndexDb(pathOf(at), at.maxClass);
    state.isSure = state.whole !== undefined;
    if (state.isSure) return ok(undefined);
    return err("memory-index-damaged", "The new index is not whole");
  } catch (thrown) {
    return err("memory-index-damaged", messageOf(thrown));
  } finally {
    closeQuietly(state.building);
    state.building = undefined;
  }
}

async function search(
  at: KeeperPlace,
  state: State,
  question: string,
  k: number,
): Promise<Result<Hits>> {
  const terms = termsOf(question);
  if (terms.length === 0) return ok({ hits: [], partial: false });
  let isReady = await within(at.clock, state.ready);
  for (let attempts = 0; attempts < 2; attempts++) {
    const db = state.whole ?? state.building;
    if (db === undefined) break;
    try {
      const hits = db.search(terms, k).map((found) => hitOf(found, terms));
      return ok({ hits, partial: !isReady || state.whole === undefined });
    } catch (thrown) {
      lose(at, state, thrown);
      state.ready = rebuild(at, state);
      isReady = await within(at.clock, state.ready);
    }
  }
  return err("memory-index-damaged", "There is no index to search in; see memoryd's log");
}

/** Whether `work` ends within the patience of a search. */
async function within(clock: Clock, work: Promise<void>): Promise<boolean> {
  const stop = new AbortController();
  const late = clock.sleep(PATIENCE_MS, stop.signal).then(() => false);
  const result = await Promise.race([work.then(() => true), late]);
  stop.abort();
  return result;
}

function hitOf({ text, ...row }: Row, terms: Terms): Hit {
  return { ...row, snippet: snippet(text, terms) };
}

function countsOf(db: IndexDb | undefined): Result<Counts> {
  if (db === undefined) return err("memory-index-damaged", "There is no index");
  try {
    return ok({ ...db.size(), skipped: db.skipped() });
  } catch (thrown) {
    return err("memory-index-damaged", messageOf(thrown));
  }
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
