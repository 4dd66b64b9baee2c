// Everything that reached the double, in order: requests with their outcome, and what happened on
// sockets. With a folder it is also on disk, so that a killed double still tells all of it.
import type { Post } from "./model.ts";

export interface RequestEntry {
  readonly kind: "request";
  readonly n: number;
  readonly atMs: number;
  readonly method: string;
  /** After `/api/v4`. */
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The user that the token named; "" = none. */
  readonly userId: string;
  /** Parsed JSON; null for bodies of other kinds. */
  readonly body: unknown;
  /** Whether the request took effect, whatever its answer was. */
  readonly isCommitted: boolean;
  /** The status sent; 0 = the answer was lost. */
  readonly status: number;
  /** The fault that caught it, or "". */
  readonly fault: string;
  /** The post that the request made or changed, as it then was. */
  readonly post: Post | null;
  /** The same post again for a repeated pending id: nothing was made. */
  readonly isEcho: boolean;
}

export interface SocketEntry {
  readonly kind: "socket";
  readonly n: number;
  readonly atMs: number;
  readonly what: string;
  readonly userId: string;
  readonly detail: string;
}

export type TrafficEntry = RequestEntry | SocketEntry;

type Unnumbered<T> = Omit<T, "n" | "atMs">;

export interface TrafficRecord {
  add(entry: Unnumbered<RequestEntry> | Unnumbered<SocketEntry>): void;
  /** Entries from number `from` on. */
  since(from: number): readonly TrafficEntry[];
  close(): void;
}

export function openRecord(folder: string | null): TrafficRecord {
  const path = folder === null ? null : `${folder}/record.jsonl`;
  const entries: TrafficEntry[] = path === null ? [] : readBack(path);
  const file = path === null ? null : Deno.openSync(path, { append: true, create: true });
  const encoder = new TextEncoder();
  const shared = new Map<string, RequestEntry["headers"]>();
  // A timer of a line that was cut may still fire after the server has stopped.
  let isOpen = file !== null;
  return {
    add: (entry) => {
      const place = { n: entries.length, atMs: Date.now() };
      const full: TrafficEntry = entry.kind === "socket"
        ? { ...entry, ...place }
        : { ...entry, ...place, headers: once(shared, entry.headers) };
      entries.push(full);
      if (file === null || !isOpen) return;
      const bytes = encoder.encode(`${JSON.stringify(full)}\n`);
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    },
    since: (from) => entries.slice(from),
    close: () => {
      isOpen = false;
      file?.close();
    },
  };
}

/** One object for all requests with the same headers, as there are few kinds and many requests. */
function once(
  shared: Map<string, RequestEntry["headers"]>,
  headers: RequestEntry["headers"],
): RequestEntry["headers"] {
  const key = JSON.stringify(headers);
  const known = shared.get(key);
  if (known === undefined) shared.set(key, headers);
  return known ?? headers;
}

function readBack(path: string): TrafficEntry[] {
  try {
    const text = Deno.readTextFileSync(path);
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole.length < text.length) Deno.writeTextFileSync(path, whole);
    return whole.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    throw thrown;
  }
}
