// The answering side of a socket: a table of kinds, and nothing outside the table is answered.
//
// 1. One connection carries one request. Bytes that follow it end it.
// 2. When the caller goes away the handler's signal aborts.
// 3. At the connection limit, or out of descriptors, the listener pauses instead of failing.
// 4. A malformed frame is logged and the connection closed; it can harm nothing else.
import { ERRORS } from "../results/codes.ts";
import { type Err, err, messageOf, type Result } from "../results/result.ts";
import { chunkReader, chunkWriter, joinBytes } from "./chunks.ts";
import {
  type BodyOf,
  type Envelope,
  type Exchange,
  type MessageSchema,
  parseAs,
  parseEnvelope,
  type Said,
  schemaOf,
} from "./exchange.ts";
import { buffered, type ByteConn, closeQuietly, readFrame, writeFrame } from "./frame.ts";
import {
  FIRST_BYTE_MS,
  FRAME_MS,
  KEEPALIVE_MS,
  MAX_CHUNK_BYTES,
  MAX_CONNECTIONS,
  WIRE_VERSION,
  WRITE_MS,
} from "./limits.ts";

/** What a handler may do before it returns its reply. */
export interface Io<E extends MessageSchema> {
  /** Sends an event; false when the caller is gone. */
  event(said: Said<E>): Promise<boolean>;
  /** Sends exact bytes; false when the caller is gone. */
  chunk(bytes: Uint8Array): Promise<boolean>;
  /** The bytes that came with the request. */
  readonly upload: Uint8Array;
  /** Aborts when the caller goes away or the server stops. */
  readonly signal: AbortSignal;
}

export interface Route {
  readonly kind: string;
  answer(frame: Envelope, conn: Talk): Promise<void>;
}

/** The middle of a conversation, handed to a route. */
export interface Talk {
  readonly conn: ByteConn;
  readonly signal: AbortSignal;
  send(value: unknown): Promise<Result<null>>;
  /** Begins to watch for the caller's end; no byte may follow. */
  watch(): void;
}

/** One row of a socket's table. */
export function on<Q extends MessageSchema, E extends MessageSchema, R extends MessageSchema>(
  exchange: Exchange<Q, E, R>,
  handler: (body: BodyOf<Q>, io: Io<E>) => Promise<Result<Said<R>>> | Result<Said<R>>,
): Route {
  const answer = async (frame: Envelope, talk: Talk): Promise<void> => {
    const request = parseAs(exchange.request, frame);
    if (!request.ok) return await sendError(talk, err("request-invalid", request.detail));
    const upload = await readUpload(talk.conn, exchange.uploadMaxBytes);
    if (!upload.ok) return await sendError(talk, upload);
    talk.watch();
    const chunks = chunkWriter(talk.send);
    const io: Io<E> = {
      event: async (said) => (await talk.send({ v: WIRE_VERSION, ...said })).ok,
      chunk: async (bytes) => (await chunks.write(bytes)).ok,
      upload: upload.value,
      signal: talk.signal,
    };
    const reply = await handler(Reflect.get(request.value, "body"), io);
    if (!reply.ok) return await sendError(talk, reply);
    if (chunks.hasStarted()) await chunks.end();
    const spoken = { v: WIRE_VERSION, kind: reply.value.kind, body: reply.value.body };
    const schema = schemaOf(exchange.replies, reply.value.kind);
    const checked = schema === undefined ? null : parseAs(schema, spoken);
    if (checked === null || !checked.ok) {
      const why = checked === null ? "not in the table" : checked.detail;
      return await sendError(talk, err("internal", `Reply ${reply.value.kind}: ${why}`));
    }
    await talk.send(spoken);
  };
  return { kind: exchange.request.shape.kind.value, answer };
}

async function readUpload(conn: ByteConn, maxBytes: number): Promise<Result<Uint8Array>> {
  if (maxBytes === 0) return { ok: true, value: new Uint8Array() };
  const reader = chunkReader(maxBytes);
  const pieces: Uint8Array[] = [];
  for (;;) {
    const raw = await readFrame(conn, { firstByteMs: FRAME_MS, frameMs: FRAME_MS });
    if (!raw.ok) return raw;
    const frame = parseEnvelope(raw.value);
    if (!frame.ok) return frame;
    if (frame.value.kind !== "chunk" && frame.value.kind !== "chunk_end") {
      return err("frame-malformed", "A request's chunks were expected");
    }
    const taken = reader.take(frame.value);
    if (!taken.ok) return taken;
    // Crumbs would hold a connection, and memory beyond their bytes, for as long as a peer likes.
    if (!taken.value.done && (pieces.at(-1)?.length ?? MAX_CHUNK_BYTES) < MAX_CHUNK_BYTES) {
      return err("frame-malformed", "A piece came after a short one");
    }
    if (taken.value.done) return { ok: true, value: joinBytes(pieces) };
    pieces.push(taken.value.bytes);
  }
}

/** Ends a conversation with a failure instead of a reply. */
export async function sendError(talk: Talk, failure: Err): Promise<void> {
  const body = {
    code: failure.code,
    message: ERRORS[failure.code].what,
    detail: failure.detail.slice(0, 3_000),
  };
  await talk.send({ v: WIRE_VERSION, kind: "error", body });
}

export interface ListenOptions {
  readonly path: string;
  readonly routes: readonly Route[];
  /** Receives one line for each peer that broke the rules. */
  readonly log: (line: string) => void;
  readonly maxConnections?: number;
  readonly limits?: { readonly firstByteMs: number; readonly frameMs: number };
}

export interface Listening {
  /** Stops listening, aborts what runs, removes the socket and waits for the rest. */
  close(): Promise<void>;
}

/**
 * Listens on a Unix socket of mode 0600. A stale socket is removed first, so the caller must hold
 * its role's lock. Throws when the path cannot be listened on.
 */
export function listen(options: ListenOptions): Listening {
  const listener = listenRaw(options.path);
  const stop = new AbortController();
  const talks = new Set<Promise<void>>();
  const loop = acceptLoop(listener, options, stop, talks);
  return {
    async close() {
      stop.abort();
      listener.close();
      await loop;
      await Promise.allSettled([...talks]);
      removeSocket(options.path);
    },
  };
}

/** Listens without a grammar, for bytes that are only passed on. Same rules and mode. */
export function listenRaw(path: string): Deno.UnixListener {
  removeSocket(path);
  const listener = Deno.listen({ transport: "unix", path });
  Deno.chmodSync(path, 0o600);
  return listener;
}

/** Removes a socket that may be gone already. */
export function removeSocket(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}

async function acceptLoop(
  listener: Deno.UnixListener,
  options: ListenOptions,
  stop: AbortController,
  talks: Set<Promise<void>>,
): Promise<void> {
  const max = options.maxConnections ?? MAX_CONNECTIONS;
  let wake = () => {};
  while (!stop.signal.aborted) {
    if (talks.size >= max) {
      // A race between the talks would keep something of each that ended, for as long as one stays.
      await new Promise<void>((resolve) => wake = resolve);
      continue;
    }
    let conn: Deno.UnixConn;
    try {
      conn = await listener.accept();
    } catch (thrown) {
      if (stop.signal.aborted) return;
      // Out of descriptors: the peer waits in the kernel's queue until some are free again.
      options.log(`accept paused: ${messageOf(thrown)}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
      continue;
    }
    // Taken in the moment of the stop: it would have nobody to end it.
    if (stop.signal.aborted) return conn.close();
    const done = serve(buffered(conn), options, stop.signal).finally(() => {
      talks.delete(done);
      wake();
    });
    talks.add(done);
  }
}

async function serve(conn: ByteConn, options: ListenOptions, stop: AbortSignal): Promise<void> {
  const gone = new AbortController();
  const end = () => {
    gone.abort();
    closeQuietly(conn);
  };
  stop.addEventListener("abort", end);
  let keepalive: ReturnType<typeof setInterval> | undefined;
  let watching: Promise<void> = Promise.resolve();
  let last: Promise<Result<null>> = Promise.resolve({ ok: true, value: null });
  const talk: Talk = {
    conn,
    signal: gone.signal,
    send(value) {
      // Frames leave one after another, whoever sends them.
      last = last.then(() =>
        gone.signal.aborted
          ? err("frame-closed", "The caller is gone")
          : writeFrame(conn, value, WRITE_MS)
      );
      return last;
    },
    watch() {
      watching = watchEnd(conn, gone, options);
      keepalive = setInterval(() => {
        talk.send({ v: WIRE_VERSION, kind: "keepalive", body: {} });
      }, KEEPALIVE_MS);
    },
  };
  try {
    await answerOne(talk, options);
  } catch (thrown) {
    options.log(`a handler threw: ${messageOf(thrown)}`);
    await sendError(talk, err("internal", "The request could not be handled"));
  } finally {
    clearInterval(keepalive);
    await last;
    stop.removeEventListener("abort", end);
    end();
    await watching;
  }
}

async function answerOne(talk: Talk, options: ListenOptions): Promise<void> {
  const limits = options.limits ?? { firstByteMs: FIRST_BYTE_MS, frameMs: FRAME_MS };
  const raw = await readFrame(talk.conn, limits);
  if (!raw.ok) {
    // A peer that connects and leaves without a byte is a health check, not a fault.
    if (raw.code !== "frame-closed" || !raw.detail.endsWith("before a frame began")) {
      options.log(`${raw.code}: ${raw.detail}`);
    }
    return;
  }
  const frame = parseEnvelope(raw.value);
  if (!frame.ok) {
    options.log(`${frame.code}: ${frame.detail}`);
    if (frame.code === "version-skew") await sendError(talk, frame);
    return;
  }
  const route = options.routes.find((row) => row.kind === frame.value.kind);
  if (route === undefined) {
    options.log(`kind-unknown: ${JSON.stringify(frame.value.kind)}`);
    return await sendError(talk, err("kind-unknown", `No request ${frame.value.kind} here`));
  }
  await route.answer(frame.value, talk);
}

async function watchEnd(
  conn: ByteConn,
  gone: AbortController,
  options: ListenOptions,
): Promise<void> {
  try {
    const read = await conn.read(new Uint8Array(1));
    if (read !== null) options.log("frame-malformed: bytes after the request");
  } catch {
    // The connection was closed under us, by either side: the same as its end.
  }
  gone.abort();
}
