// The event stream of one answer: frames events, pings in silence after the headers, and cuts or
// joins writes as the knobs ask. Events already sent are never changed.
import type { Exchange, HeaderList } from "./http_server.ts";
import type { Knobs } from "./knobs.ts";

export type SseOut = {
  open(): Promise<void>;
  event(value: unknown): Promise<void>;
  /** Bytes in place of an event. */
  raw(text: string): Promise<void>;
  /** Flushes, sends the chunk terminator and stops the pings. */
  end(): Promise<void>;
  /** Stops the pings without a word (the connection is gone or dropped). */
  stop(): void;
  /** No pings until `speak`. */
  hush(): void;
  speak(): void;
};

export const COMMON_HEADERS: HeaderList = [
  ["Server", "llama.cpp"],
  ["Access-Control-Allow-Origin", ""],
];
export const STREAM_HEADERS: HeaderList = [
  ["Content-Type", "text/event-stream"],
  ["X-Accel-Buffering", "no"],
  ...COMMON_HEADERS,
];
const PING = ":\n\n";
const encoder = new TextEncoder();

export type SseOptions = {
  readonly exchange: Exchange;
  readonly knobs: Knobs;
  /** Silence before a ping; 0 = never. */
  readonly pingMs: number;
  /** A copy of every byte of the body, as it is produced. */
  readonly copy: (bytes: Uint8Array) => void;
};

export function sseOut({ exchange, knobs, pingMs, copy }: SseOptions): SseOut {
  let tail: Promise<void> = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let joinedText = "";
  let isSilent = true;
  const send = (text: string): Promise<void> => {
    if (text === "") return tail;
    const bytes = encoder.encode(text);
    copy(bytes);
    tail = tail.then(() => exchange.chunks(cut(bytes, knobs)));
    return tail;
  };
  const put = (text: string): Promise<void> => {
    rearm();
    if (!knobs.joinAll) return send(text);
    joinedText += text;
    return tail;
  };
  const rearm = () => {
    clearTimeout(timer);
    if (pingMs <= 0 || isSilent) return;
    timer = setTimeout(() => void put(PING), pingMs);
  };
  const stop = () => {
    isSilent = true;
    clearTimeout(timer);
  };
  return {
    open: async () => {
      const doubled = [["Connection", "close"], ["Connection", "close"]] as const;
      const extra = knobs.doubleConnectionHeader ? doubled : [];
      await exchange.open(200, [...STREAM_HEADERS, ...extra]);
      isSilent = false;
      rearm();
    },
    event: (value) => {
      const ping = knobs.pingBetweenEvents ? PING : "";
      const text = typeof value === "string" ? value : JSON.stringify(value);
      return put(`data: ${text}\n\n${ping}`);
    },
    raw: put,
    end: async () => {
      stop();
      await send(joinedText);
      joinedText = "";
      await exchange.end();
    },
    stop,
    hush: stop,
    speak: () => {
      isSilent = false;
      rearm();
    },
  };
}

/** The writes one event becomes. */
function cut(bytes: Uint8Array, knobs: Knobs): Uint8Array[] {
  if (knobs.splitEvery > 0) {
    const count = Math.ceil(bytes.length / knobs.splitEvery);
    return Array.from(
      { length: count },
      (_, i) => bytes.subarray(i * knobs.splitEvery, (i + 1) * knobs.splitEvery),
    );
  }
  const at = knobs.splitAt < 0 ? bytes.length + knobs.splitAt : knobs.splitAt;
  return at <= 0 || at >= bytes.length ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)];
}
