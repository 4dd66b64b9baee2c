// The model server as loopd uses it: one streamed question at a time, a few small look-ups, and the
// rules for what is tried again. Failures are told apart by status and type, never by their words,
// as the owner's own text may quote any of them.
import { z } from "zod";
import type { Clock } from "../../shared/clock/clock.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { decodeLossy, encodeCanonical, parseJson } from "../../shared/wire/codec.ts";
import { type Answer, type Completion, completion, type Piece } from "./completion.ts";
import { modelState, slotsOf } from "./model_facts.ts";
import type { ModelHttp } from "./model_http.ts";
import { sseReader } from "./sse.ts";

const COMPLETIONS = "/v1/chat/completions";
const SMALL_BYTES = 4_194_304;
/** Waits before each further try. */
const BACKOFF_MS = [250, 1_000, 3_000];
/** Thinking tokens that may still come after the server was asked to end the thought. */
const THINKING_GRACE = 64;
const FREE_SLOT_MS = 30_000;

export interface ModelOptions {
  readonly http: ModelHttp;
  readonly clock: Clock;
  readonly model: string;
  readonly firstByteMs: number;
  readonly silenceMs: number;
  /** Aborts when the process stops; nothing is waited for then. */
  readonly stopping: AbortSignal;
}

export interface AskOptions {
  readonly slot: number;
  readonly signal: AbortSignal;
  /** Thinking tokens left in this turn, at least 1. */
  readonly thinkingLeft: number;
  readonly onPiece: (piece: Piece) => void;
  /** Told of a failure that is about to be tried again, with the text that had come. */
  readonly onRetry: (failure: Err, partial: string) => void;
}

export interface Model {
  /** Asks, again when that can help, and gives the whole answer. */
  ask(body: Uint8Array<ArrayBuffer>, options: AskOptions): Promise<Result<Answer>>;
  /** Waits for a slot that a dropped request may still keep busy, within bounds. */
  whenFree(slot: number): Promise<void>;
  /** Drops what a slot holds; false when the server does not do that. */
  erase(slot: number): Promise<boolean>;
  /** A small JSON answer; null for any status but 200. Fails with `model-unreachable` or `model-silent`. */
  look(path: string, body?: unknown): Promise<Result<unknown>>;
}

/** `by-model`: the state of the model tells whether trying again helps. */
type Failure = {
  readonly err: Err;
  readonly retry: "never" | "once" | "backoff" | "by-model";
};

const ErrorBody = z.object({ error: z.object({ type: z.string(), message: z.string() }) });

/** What an error status means, by its status and the type in its body. */
export function judgeStatus(status: number, body: string): Failure {
  const value = parseJson(body);
  const parsed = value.ok ? ErrorBody.safeParse(value.value) : null;
  const type = parsed?.success ? parsed.data.error.type : null;
  const said = (parsed?.success ? parsed.data.error.message : body).slice(0, 500);
  const detail = `The server answered ${status}: ${said}`;
  if (type === "exceed_context_size_error") {
    return { err: err("session-full", detail), retry: "never" };
  }
  if (status === 401 || status === 403) {
    return { err: err("model-auth-required", detail), retry: "never" };
  }
  if (status === 503 || (status === 500 && type === null)) {
    return { err: err("model-unreachable", detail), retry: "backoff" };
  }
  // Most of these are permanent faults of the request, but a failed load looks the same.
  return { err: err("model-refused", detail), retry: status === 500 ? "by-model" : "never" };
}

export function makeModel(options: ModelOptions): Model {
  return {
    ask: (body, ask) => askWithRetries(options, body, ask),
    whenFree: (slot) => waitForFreeSlot(options, slot),
    look: (path, body) => look(options, path, body),
    erase: async (slot) => {
      const erased = await look(options, `/slots/${slot}?action=erase`, { model: options.model });
      return erased.ok && erased.value !== null;
    },
  };
}

async function askWithRetries(
  options: ModelOptions,
  body: Uint8Array<ArrayBuffer>,
  ask: AskOptions,
): Promise<Result<Answer>> {
  for (let tries = 0;; tries++) {
    const attempt = await askOnce(options, body, ask);
    if (!("err" in attempt)) return ok(attempt);
    if (ask.signal.aborted) return err("turn-cancelled", "The request was dropped");
    const failure = attempt.retry === "by-model"
      ? await judgeModel(options, attempt, ask.signal)
      : attempt;
    const most = { never: 0, once: 1, backoff: BACKOFF_MS.length, "by-model": 0 }[failure.retry];
    if (tries >= most) return failure.err;
    ask.onRetry(failure.err, attempt.partial);
    await options.clock.sleep(BACKOFF_MS[tries] ?? 0, ask.signal);
  }
}

/**
 * What a refusal or a long silence means, by the state of the model. One that is still loading after
 * the whole first limit is told to stop, as nobody can be using it.
 */
async function judgeModel(
  options: ModelOptions,
  failure: Failure,
  signal: AbortSignal,
): Promise<Failure> {
  const { model } = options;
  const at = { look: (path: string, body?: unknown) => look(options, path, body, signal) };
  const seen = await modelState(at, model);
  if (!seen.ok || seen.value === "loaded") return { ...failure, retry: "never" };
  const isStuck = failure.err.code === "model-silent";
  if (isStuck && seen.value !== "loading") return { ...failure, retry: "never" };
  if (isStuck) await at.look("/models/unload", { model });
  const detail = `${model} is ${isStuck ? "still " : ""}${seen.value}. ${failure.err.detail}`;
  return { err: err("model-not-loaded", detail), retry: isStuck ? "never" : "backoff" };
}

/** Calls `drop` when nothing came for too long: one limit before the first byte, another after it. */
function silenceWatch(options: ModelOptions, firstByteMs: number, drop: () => void) {
  const over = new AbortController();
  let last = options.clock.monotonicMs();
  let limit = firstByteMs;
  let silence: string | null = null;
  const watch = async () => {
    while (!over.signal.aborted) {
      const left = last + limit - options.clock.monotonicMs();
      if (left <= 0) {
        silence = `No byte came for ${limit / 1_000} seconds`;
        return drop();
      }
      // The first byte shortens the limit, so no sleep may be longer than the shorter one.
      await options.clock.sleep(Math.min(left, options.silenceMs), over.signal);
    }
  };
  const done = watch();
  return {
    byte() {
      last = options.clock.monotonicMs();
      limit = options.silenceMs;
    },
    /** Ends the watch; what was too long, or null. */
    async end(): Promise<string | null> {
      over.abort();
      await done;
      return silence;
    },
  };
}

interface Exchange {
  readonly path: string;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly firstByteMs: number;
  readonly signal: AbortSignal;
  onBytes(bytes: Uint8Array, status: number, drop: () => void): void;
}

/** One exchange, dropped by `signal`, by its reader, by too long a silence, and by the end of the process. */
async function exchange(options: ModelOptions, o: Exchange) {
  const dropped = new AbortController();
  const drop = () => dropped.abort();
  const signals = [o.signal, options.stopping];
  for (const signal of signals) signal.addEventListener("abort", drop);
  if (signals.some((signal) => signal.aborted)) drop();
  const watch = silenceWatch(options, o.firstByteMs, drop);
  let status = 0;
  const result = await options.http({
    method: o.body === undefined ? "GET" : "POST",
    path: o.path,
    ...(o.body === undefined ? {} : { body: o.body }),
    signal: dropped.signal,
    onStatus(code) {
      watch.byte();
      status = code;
    },
    onBytes(bytes) {
      watch.byte();
      o.onBytes(bytes, status, drop);
    },
  });
  const silence = await watch.end();
  for (const signal of signals) signal.removeEventListener("abort", drop);
  return { result, status, silence, isDropped: dropped.signal.aborted };
}

/** Collects an answer that ought to be small. */
function smallAnswer() {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return {
    take(bytes: Uint8Array, drop: () => void): void {
      size += bytes.length;
      if (size > SMALL_BYTES) drop();
      else pieces.push(bytes.slice());
    },
    text: () => decodeLossy(joinBytes(pieces)),
  };
}

async function askOnce(
  options: ModelOptions,
  body: Uint8Array<ArrayBuffer>,
  ask: AskOptions,
): Promise<Answer | Failure & { readonly partial: string }> {
  const made = completion();
  const feed = feeder(made, ask.onPiece);
  const control = thinkingControl(options, made, ask.thinkingLeft);
  const refusal = smallAnswer();
  let broken: Err | null = null;
  const sent = await exchange(options, {
    path: COMPLETIONS,
    body,
    firstByteMs: options.firstByteMs,
    signal: ask.signal,
    onBytes(bytes, status, drop) {
      if (status !== 200) return refusal.take(bytes, drop);
      broken ??= feed(bytes);
      if (broken !== null || control.isOver()) drop();
    },
  });
  await control.stop();
  // Without a status too: its first bytes may have been on their way.
  if (sent.isDropped) await waitForFreeSlot(options, ask.slot, ask.signal);
  const failed = (failure: Err, retry: Failure["retry"]) => ({
    ...{ err: failure, retry },
    partial: made.partial(),
  });
  const { result, status, silence } = sent;
  if (silence !== null) {
    return failed(err("model-silent", silence), status === 0 ? "by-model" : "never");
  }
  if (control.isOver()) {
    const detail = `The model thought for more than ${ask.thinkingLeft} tokens`;
    return failed(err("thinking-limit", detail), "never");
  }
  if (broken !== null) return failed(broken, "once");
  if (!result.ok && result.code === "model-unreachable") return failed(result, "backoff");
  if (status !== 200) {
    const { err, retry } = judgeStatus(status, refusal.text());
    return failed(err, retry);
  }
  const answer = result.ok ? made.answer() : result;
  return answer.ok ? answer.value : failed(answer, "once");
}

/** Passes the pieces of every event on; gives the first thing that is wrong with the stream. */
function feeder(made: Completion, onPiece: (piece: Piece) => void) {
  const reader = sseReader();
  return (bytes: Uint8Array): Err | null => {
    const events = reader.feed(bytes);
    if (!events.ok) return events;
    for (const data of events.value) {
      const pieces = made.take(data);
      if (!pieces.ok) return pieces;
      pieces.value.forEach(onPiece);
    }
    return null;
  };
}

/** Asks the server to end a thought that has used up its tokens, once. */
function thinkingControl(options: ModelOptions, made: Completion, limit: number) {
  const ended = new AbortController();
  let asked: Promise<unknown> | null = null;
  return {
    /** Whether the thought goes on in spite of that. */
    isOver(): boolean {
      const tokens = made.thinkingTokens();
      const id = made.id();
      if (tokens >= limit && asked === null && id !== null) {
        const body = { model: options.model, id, action: "reasoning_end" };
        asked = look(options, `${COMPLETIONS}/control`, body, ended.signal);
      }
      return tokens > limit + THINKING_GRACE;
    },
    /** The stream is over, and with it all that the server's word could be good for. */
    async stop() {
      ended.abort();
      await asked;
    },
  };
}

/** After a dropped request the server may go on for a while; a slot is free when it says so. */
async function waitForFreeSlot(
  options: ModelOptions,
  slot: number,
  signal = options.stopping,
): Promise<void> {
  const until = options.clock.monotonicMs() + FREE_SLOT_MS;
  const at = { look: (path: string) => look(options, path, undefined, signal) };
  while (options.clock.monotonicMs() < until && !signal.aborted) {
    const slots = await slotsOf(at, options.model);
    // A server that does not tell is not waited for.
    const own = slots?.find((one) => one.id === slot % slots.length);
    if (own === undefined || !own.is_processing) return;
    await options.clock.sleep(100, signal);
  }
}

async function look(
  options: ModelOptions,
  path: string,
  body?: unknown,
  signal = options.stopping,
): Promise<Result<unknown>> {
  const small = smallAnswer();
  const { result, status, silence } = await exchange(options, {
    path,
    ...(body === undefined ? {} : { body: encodeCanonical(body) }),
    firstByteMs: options.silenceMs,
    signal,
    onBytes: (bytes, _status, drop) => small.take(bytes, drop),
  });
  if (silence !== null) return err("model-silent", silence);
  if (!result.ok) return err("model-unreachable", result.detail);
  if (status === 401 || status === 403) return err("model-auth-required", `Status ${status}`);
  const value = status === 200 ? parseJson(small.text()) : ok(null);
  return value.ok ? value : err("model-refused", value.detail);
}
