// memoryd's side of the search Worker. A search has a deadline; a Worker that says nothing at all for
// too long while something is asked of it cannot be stopped from outside, so the role has to end.
import { z } from "zod";
import { type Clock, inTime } from "../../shared/clock/clock.ts";
import type { DataClass } from "../../shared/labels/label.ts";
import { isErrorCode } from "../../shared/results/codes.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { Counts } from "./index_db.ts";
import { type Ask, Hits, type Index, type OnStep, Told } from "./index_messages.ts";

/** Well within the time that a role has for stopping. */
const CLOSE_MS = 4_000;
const BUSY = err("recall-late", "The index is busy");
const STOPPING = err("peer-down", "memoryd is stopping");

export interface WorkerPort {
  post(message: Ask): void;
  listen(onMessage: (data: unknown) => void, onError: (reason: string) => void): void;
  end(): void;
}

export type ClientOptions = {
  readonly port: WorkerPort;
  readonly clock: Clock;
  readonly home: string;
  readonly maxClass: DataClass;
  readonly log: (line: string) => void;
  /** Called once when the Worker has failed or is stuck. */
  readonly onLost: (reason: string) => void;
  /** How long a search may take. */
  readonly lateMs: number;
  /** How long the Worker may say nothing while something is asked of it. */
  readonly stuckMs: number;
};

type Waiting = { settle(result: Result<unknown>): void; onStep: OnStep };

/**
 * Opens the index in the Worker and watches over it. Closing answers who waits, and waits for the
 * Worker only so long.
 */
export function openIndex(o: ClientOptions): Index {
  const waiting = new Map<number, Waiting>();
  const closed = new AbortController();
  let nextId = 1;
  let heardMs = o.clock.monotonicMs();
  o.port.listen((data) => {
    heardMs = o.clock.monotonicMs();
    hear(o, waiting, data);
  }, o.onLost);
  o.port.post({ kind: "open", id: 0, home: o.home, max_class: o.maxClass });

  const ask = async <S extends z.ZodType>(
    schema: S,
    make: (id: number) => Ask,
    onStep: OnStep = () => {},
  ): Promise<Result<z.output<S>>> => {
    if (closed.signal.aborted) return STOPPING;
    const id = nextId++;
    if (waiting.size === 0) heardMs = o.clock.monotonicMs();
    const told = await new Promise<Result<unknown>>((settle) => {
      waiting.set(id, { settle, onStep });
      o.port.post(make(id));
    });
    waiting.delete(id);
    if (!told.ok) return told;
    const parsed = schema.safeParse(told.value);
    return parsed.success
      ? ok(parsed.data)
      : err("internal", "The Worker's answer has a wrong form");
  };
  void watch(o, closed.signal, () => waiting.size > 0 ? o.clock.monotonicMs() - heardMs : 0);
  return {
    search: (query, k) => {
      const late = err("recall-late", "The search did not end in time");
      const found = ask(Hits, (id) => ({ kind: "search", id, query, k }));
      return inTime(o.clock, found, o.lateMs, late);
    },
    update: async (session) => {
      const done = await ask(z.null(), (id) => ({ kind: "update", id, session }));
      if (!done.ok) o.log(`The index could not be brought up to date: ${done.detail}`);
    },
    reindex: (onStep) => ask(Counts, (id) => ({ kind: "reindex", id }), onStep),
    counts: () => inTime(o.clock, ask(Counts, (id) => ({ kind: "counts", id })), o.lateMs, BUSY),
    check: () => ask(z.null(), (id) => ({ kind: "check", id })),
    close: async () => {
      for (const one of waiting.values()) one.settle(STOPPING);
      const done = ask(z.null(), (id) => ({ kind: "close", id }));
      closed.abort();
      await inTime(o.clock, done, CLOSE_MS, BUSY);
      o.port.end();
    },
  };
}

function hear(o: ClientOptions, waiting: ReadonlyMap<number, Waiting>, data: unknown): void {
  const told = Told.safeParse(data);
  if (!told.success) return o.onLost("The Worker said something that is not in the table");
  if (told.data.kind === "log") return o.log(told.data.line);
  const one = waiting.get(told.data.id);
  if (told.data.kind === "done") return one?.settle(ok(told.data.value));
  if (told.data.kind === "progress") return one?.onStep(told.data.step);
  const { code, detail } = told.data;
  return one?.settle(err(isErrorCode(code) ? code : "internal", detail));
}

async function watch(o: ClientOptions, closed: AbortSignal, silentMs: () => number): Promise<void> {
  while (!closed.aborted) {
    await o.clock.sleep(o.stuckMs / 4, closed);
    if (closed.aborted || silentMs() < o.stuckMs) continue;
    return o.onLost(`The search Worker has said nothing for ${Math.round(silentMs())} ms`);
  }
}
