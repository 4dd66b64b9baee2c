// Requests to the one server. Each answer is judged by status and id, never by its words; whatever
// leaves open whether a request was carried out is `unknown`.
//
// 1. The token goes into one header of requests to the configured address and nowhere else; a
//    redirect is not followed.
// 2. All requests share one bucket, and a server that asks for patience gets it from all of them.
// 3. A body is read up to a limit, and may be anything.
// 4. A redirect, and a 404 that is not in the server's own form, is somebody else's answer in the
//    server's place, as while it restarts behind a proxy: it says nothing about the request.
import type { z } from "zod";
import type { Secret } from "../../shared/secrets/secret_store.ts";
import { messageOf } from "../../shared/results/result.ts";
import { readCapped } from "../../shared/wire/chunks.ts";
import { canonicalText, decodeLossy } from "../../shared/wire/codec.ts";
import { AppError, parseSaid } from "./mattermost.ts";
import type { Parts } from "./parts.ts";
import type { Timers } from "./timers.ts";

const MAX_BODY_BYTES = 16_777_216;
const LONGEST_PATIENCE_S = 300;

export type Answer<T> =
  | { readonly is: "ok"; readonly value: T }
  /** The server has said no; asking again is of no use. */
  | {
    readonly is: "refused";
    readonly status: number;
    readonly id: string;
    readonly detail: string;
  }
  /** The request may or may not have been carried out. */
  | { readonly is: "unknown"; readonly detail: string };

export interface Ask {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/api/v4`. */
  readonly path: string;
  readonly json?: unknown;
  readonly bytes?: Uint8Array<ArrayBuffer>;
}

type RestOptions = Pick<Parts, "base" | "token" | "clock" | "timers" | "health" | "signal"> & {
  readonly fetch: typeof fetch;
  /** The server's version changed. */
  readonly onVersion: () => void;
};

type Raw = { readonly status: number; readonly bytes: Uint8Array };
/** Stands for an answer that is longer than it may be. */
const TOO_LARGE: Raw = { status: 413, bytes: new Uint8Array() };

export type Rest = ReturnType<typeof makeRest>;

export function makeRest(options: RestOptions) {
  const take = bucket(options);
  let version = "";
  let isMoved = false;
  const send = async (ask: Ask, maxBytes: number): Promise<Raw | string> => {
    await take.turn();
    const { health, timers } = options;
    const abort = new AbortController();
    const over = new AbortController();
    const stop = () => abort.abort();
    // AbortSignal.any would keep what it makes for as long as the channel lives.
    options.signal.addEventListener("abort", stop);
    if (options.signal.aborted) stop();
    options.clock.sleep(timers.requestMs, over.signal).then(stop);
    try {
      const response = await options.fetch(`${options.base}/api/v4${ask.path}`, {
        method: ask.method,
        headers: headersOf(ask, options.token),
        body: ask.bytes ?? (ask.json === undefined ? null : canonicalText(ask.json)),
        redirect: "manual",
        signal: abort.signal,
      });
      const bytes = await readCapped(response.body ?? [], maxBytes);
      const { status, headers } = response;
      const now = headers.get("X-Version-Id") ?? version;
      if (version !== "" && now !== version) options.onVersion();
      version = now;
      if (status === 429) take.pause(patienceMs(headers, timers));
      if (status === 401) {
        health.set("channel-token-refused", "The server does not take the bot's token");
      }
      const wasMoved = isMoved;
      isMoved = status >= 300 && status < 400;
      if (isMoved) {
        health.set("channel-misconfigured", `The server answers with a redirect (${status})`);
      } else if (wasMoved) health.clear("channel-misconfigured");
      if (bytes !== null) return { status, bytes };
      // What was only read is not read; what was to change may have been changed.
      return ask.method === "GET" ? TOO_LARGE : `an answer of more than ${maxBytes} bytes`;
    } catch (thrown) {
      return abort.signal.aborted ? "no answer in time" : reasonOf(thrown);
    } finally {
      over.abort();
      options.signal.removeEventListener("abort", stop);
    }
  };
  return {
    /** Sends a request and reads its answer by `schema`. */
    async ask<S extends z.ZodType>(ask: Ask, schema: S): Promise<Answer<z.output<S>>> {
      for (;;) {
        const raw = await send(ask, MAX_BODY_BYTES);
        if (typeof raw === "string") return { is: "unknown", detail: raw };
        if (raw.status === 429 && !options.signal.aborted) continue;
        return answerOf(raw, schema);
      }
    },
    /** A file's bytes, at most `maxBytes` of them. */
    async file(id: string, maxBytes: number): Promise<Answer<Uint8Array>> {
      const raw = await send({ method: "GET", path: `/files/${id}` }, maxBytes);
      if (typeof raw === "string") return { is: "unknown", detail: raw };
      if (raw.status === 200) return { is: "ok", value: raw.bytes };
      const refusal = refusalOf(raw);
      const isUnknown = raw.status === 429 || isOpen(raw, refusal.id);
      return { is: isUnknown ? "unknown" : "refused", ...refusal };
    },
  };
}

/** Why a request failed: the runtime says it in the cause, after the address. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return messageOf(cause ?? thrown).replace(/^error sending request .*?\): /, "").slice(0, 300);
}

function headersOf(ask: Ask, token: Secret): Record<string, string> {
  const type = ask.bytes === undefined ? "application/json" : "text/plain";
  return {
    Authorization: `Bearer ${token.reveal()}`,
    ...(ask.json === undefined && ask.bytes === undefined ? {} : { "Content-Type": type }),
  };
}

function answerOf<S extends z.ZodType>(raw: Raw, schema: S): Answer<z.output<S>> {
  const refusal = refusalOf(raw);
  if (isOpen(raw, refusal.id)) return { is: "unknown", detail: refusal.detail };
  if (raw.status >= 300) return { is: "refused", ...refusal };
  const value = parseSaid(decodeLossy(raw.bytes));
  const parsed = value === undefined ? null : schema.safeParse(value);
  // What was asked for may well have happened, but this does not tell.
  if (parsed === null || !parsed.success) {
    return { is: "unknown", detail: `${raw.status} without the answer that was expected` };
  }
  return { is: "ok", value: parsed.data };
}

/** Whether an answer leaves open what became of its request. */
function isOpen({ status }: Raw, id: string): boolean {
  return status >= 500 || (status >= 300 && status < 400) || status === 408 ||
    (status === 404 && id === "");
}

function refusalOf({ status, bytes }: Raw) {
  const error = AppError.safeParse(parseSaid(decodeLossy(bytes)));
  const id = error.success ? error.data.id.slice(0, 200) : "";
  return { status, id, detail: `${status} ${id}` };
}

function patienceMs(headers: Headers, timers: Timers): number {
  const said = Number(headers.get("Retry-After") ?? headers.get("X-RateLimit-Reset") ?? "");
  const seconds = Number.isFinite(said) && said > 0 ? Math.min(said, LONGEST_PATIENCE_S) : 0;
  return Math.max(seconds * timers.firstPauseMs, timers.firstPauseMs);
}

/** Lets requests through one after another, a burst at once and then at a steady pace. */
function bucket({ clock, timers, signal }: RestOptions) {
  let freeAtMs = 0;
  let pausedUntilMs = 0;
  let last = Promise.resolve();
  const wait = async () => {
    for (;;) {
      const now = clock.monotonicMs();
      const burstMs = timers.burst * timers.perRequestMs;
      freeAtMs = Math.max(freeAtMs, now - burstMs);
      const ms = Math.max(freeAtMs - now, pausedUntilMs - now);
      if (ms <= 0 || signal.aborted) break;
      await clock.sleep(ms, signal);
    }
    freeAtMs += timers.perRequestMs;
  };
  return {
    turn: () => (last = last.then(wait)),
    pause: (ms: number) => {
      pausedUntilMs = Math.max(pausedUntilMs, clock.monotonicMs() + ms);
    },
  };
}
