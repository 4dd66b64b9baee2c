// What was asked of the double, for tests: one entry per request, in order of arrival.
import type { Exchange } from "./http_server.ts";
import type { JsonObject } from "./json_value.ts";
import { isObject } from "./json_value.ts";

export type RequestRecord = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly bodyText: string;
  /** The body as JSON; `{}` when it is none. */
  readonly body: JsonObject;
  /** Milliseconds on one monotonic clock. */
  readonly arrivedMs: number;
  firstByteMs: number | null;
  closedMs: number | null;
  /** For completions: how the answer ended, null while it runs or when it was refused. */
  outcome: "finished" | "cancelled" | "interrupted" | "broken" | "aborted" | null;
  slot: number | null;
  cacheN: number | null;
  promptN: number | null;
  predictedN: number | null;
};

/** Starts an entry and keeps its first-byte time; the caller sets `closedMs`. */
export function recordOf(exchange: Exchange): RequestRecord {
  const { method, path, query, headers, bodyText, body } = exchange.request;
  const record: RequestRecord = {
    method,
    path,
    query: query.toString(),
    headers,
    bodyText,
    body: isObject(body) ? body : {},
    arrivedMs: performance.now(),
    firstByteMs: null,
    closedMs: null,
    outcome: null,
    slot: null,
    cacheN: null,
    promptN: null,
    predictedN: null,
  };
  exchange.onFirstByte = () => {
    record.firstByteMs = performance.now();
  };
  return record;
}
