// HTTP/1.1 by hand over TCP, so that the double decides about every byte: when headers go out, where
// a write is cut, whether a body ends properly. One exchange at a time per connection, kept alive.
// Listens on 127.0.0.1 only. The end of the client's side counts as the client being gone.
import { parsed } from "./json_value.ts";

export type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bodyText: string;
  /** The body as JSON; undefined when it is none. */
  readonly body: unknown;
};

export type Exchange = {
  readonly request: HttpRequest;
  /** Aborts when the client goes away before the answer has ended. */
  readonly gone: AbortSignal;
  /** A whole answer with a length. */
  respond(status: number, headers: HeaderList, body: string): Promise<void>;
  /** Status line and headers of a chunked answer. */
  open(status: number, headers: HeaderList): Promise<void>;
  /** One chunk, sent in one write, or one write (and chunk) per element. */
  chunks(pieces: readonly Uint8Array[]): Promise<void>;
  /** The chunk terminator. */
  end(): Promise<void>;
  /** Drops the connection as it stands. */
  reset(): void;
  /** Called once with the time of the first byte of the answer. */
  onFirstByte: (() => void) | null;
};

export type HeaderList = readonly (readonly [name: string, value: string])[];
export type HttpServer = {
  readonly port: number;
  /**
   * Closes the listener and every connection; resolves when all handlers have returned, and
   * rejects with the first thing one of them threw (a script's own mistake).
   */
  stop(): Promise<void>;
};

const encoder = new TextEncoder();
const REASONS: Record<number, string> = {
  200: "OK",
  204: "No Content",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};
const MAX_HEAD_BYTES = 64 * 1024;
/** Long enough for the two halves of a cut write to arrive as two reads. */
const CUT_PAUSE_MS = 2;

/** @param port 0 = a free one */
export function serveHttp(
  port: number,
  handle: (exchange: Exchange) => Promise<void>,
): HttpServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port, transport: "tcp" });
  const open = new Set<Deno.TcpConn>();
  const running = new Set<Promise<void>>();
  const thrown: unknown[] = [];
  const serve = async (conn: Deno.TcpConn) => {
    conn.setNoDelay(true);
    open.add(conn);
    await serveConnection(conn, handle).catch((error: unknown) => thrown.push(error));
    closeQuietly(conn);
    open.delete(conn);
  };
  const accept = async () => {
    for await (const conn of listener) {
      const one = serve(conn).finally(() => running.delete(one));
      running.add(one);
    }
  };
  const accepting = accept();
  return {
    port: listener.addr.port,
    stop: async () => {
      listener.close();
      await accepting;
      for (const conn of open) closeQuietly(conn);
      await Promise.all(running);
      if (thrown.length > 0) throw thrown[0];
    },
  };
}

function closeQuietly(conn: Deno.TcpConn): void {
  try {
    conn.close();
  } catch {
    // Already closed by the other side of this program.
  }
}

/** A connection's incoming bytes; one read is in flight at a time, whoever waits for it. */
type Source = {
  readonly bytes: () => Uint8Array;
  readonly take: (count: number) => Uint8Array;
  readonly ended: () => boolean;
  readonly more: () => Promise<void>;
};

function sourceOf(conn: Deno.TcpConn): Source {
  let buffer = new Uint8Array(0);
  let ended = false;
  let reading: Promise<void> | null = null;
  const read = async () => {
    const piece = new Uint8Array(64 * 1024);
    const n = await conn.read(piece).catch(() => null);
    if (n === null) ended = true;
    else buffer = joined(buffer, piece.subarray(0, n));
    reading = null;
  };
  return {
    bytes: () => buffer,
    take: (count) => {
      const taken = buffer.slice(0, count);
      buffer = buffer.slice(count);
      return taken;
    },
    ended: () => ended,
    more: () => reading ??= read(),
  };
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

async function serveConnection(
  conn: Deno.TcpConn,
  handle: (exchange: Exchange) => Promise<void>,
): Promise<void> {
  const source = sourceOf(conn);
  while (true) {
    const request = await readRequest(source);
    if (request === null) break;
    const goneController = new AbortController();
    let answered = false;
    const watch = async () => {
      while (!source.ended() && !answered) await source.more();
      if (!answered) goneController.abort();
    };
    const watching = watch();
    const state = { dead: false };
    const exchange = exchangeOf(conn, request, goneController, state);
    await handle(exchange);
    answered = true;
    const keep = request.headers.get("connection")?.toLowerCase() !== "close";
    if (!state.dead && keep && !source.ended()) continue;
    closeQuietly(conn);
    await watching;
    return;
  }
  closeQuietly(conn);
}

async function readRequest(source: Source): Promise<HttpRequest | null> {
  let headEnd = -1;
  while ((headEnd = indexOfBlankLine(source.bytes())) < 0) {
    if (source.ended() || source.bytes().length > MAX_HEAD_BYTES) return null;
    await source.more();
  }
  const head = new TextDecoder().decode(source.take(headEnd + 4));
  const [line = "", ...fields] = head.trimEnd().split("\r\n");
  const [method = "", target = ""] = line.split(" ");
  const headers = new Map(fields.map((field) => {
    const colon = field.indexOf(":");
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const;
  }));
  const body = headers.get("transfer-encoding")?.toLowerCase() === "chunked"
    ? await readChunked(source)
    : await readExactly(source, Number(headers.get("content-length") ?? "0"));
  if (body === null || !URL.canParse(target, "http://127.0.0.1")) return null;
  const bodyText = new TextDecoder().decode(body);
  const url = new URL(target, "http://127.0.0.1");
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    headers,
    bodyText,
    body: parsed(bodyText),
  };
}

function indexOfBlankLine(bytes: Uint8Array): number {
  for (let i = bytes.indexOf(13); i >= 0; i = bytes.indexOf(13, i + 1)) {
    if (bytes[i + 1] === 10 && bytes[i + 2] === 13 && bytes[i + 3] === 10) return i;
  }
  return -1;
}

async function readExactly(source: Source, count: number): Promise<Uint8Array | null> {
  while (source.bytes().length < count) {
    if (source.ended()) return null;
    await source.more();
  }
  return source.take(count);
}

async function readLine(source: Source): Promise<string | null> {
  let end = -1;
  while ((end = source.bytes().indexOf(10)) < 0) {
    if (source.ended()) return null;
    await source.more();
  }
  return new TextDecoder().decode(source.take(end + 1)).trim();
}

async function readChunked(source: Source): Promise<Uint8Array | null> {
  let body: Uint8Array = new Uint8Array(0);
  while (true) {
    const line = await readLine(source);
    if (line === null) return null;
    const size = Number.parseInt(line, 16);
    if (!(size > 0)) return await readLine(source) === null ? null : body;
    const piece = await readExactly(source, size + 2);
    if (piece === null) return null;
    body = joined(body, piece.subarray(0, size));
  }
}

function exchangeOf(
  conn: Deno.TcpConn,
  request: HttpRequest,
  gone: AbortController,
  state: { dead: boolean },
): Exchange {
  const die = () => {
    state.dead = true;
    gone.abort();
  };
  const write = async (bytes: Uint8Array) => {
    if (state.dead) return;
    exchange.onFirstByte?.();
    exchange.onFirstByte = null;
    try {
      for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
    } catch {
      die(); // The client is gone; the exchange goes on without a reader.
    }
  };
  const head = (status: number, headers: HeaderList) =>
    [
      `HTTP/1.1 ${status} ${REASONS[status] ?? "Unknown"}`,
      ...headers.map(([name, value]) => `${name}: ${value}`),
      "",
      "",
    ].join("\r\n");
  const exchange: Exchange = {
    request,
    gone: gone.signal,
    onFirstByte: null,
    respond: (status, headers, body) => {
      const bytes = encoder.encode(body);
      const length = ["Content-Length", `${bytes.length}`] as const;
      return write(joined(encoder.encode(head(status, [...headers, length])), bytes));
    },
    open: (status, headers) =>
      write(encoder.encode(head(status, [...headers, ["Transfer-Encoding", "chunked"]]))),
    chunks: async (pieces) => {
      for (const [i, piece] of pieces.entries()) {
        if (i > 0) await new Promise((resolve) => setTimeout(resolve, CUT_PAUSE_MS));
        const framed = joined(encoder.encode(`${piece.length.toString(16)}\r\n`), piece);
        if (piece.length > 0) await write(joined(framed, encoder.encode("\r\n")));
      }
    },
    end: () => write(encoder.encode("0\r\n\r\n")),
    reset: () => {
      die();
      closeQuietly(conn);
    },
  };
  return exchange;
}
