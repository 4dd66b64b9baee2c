// The asking side of a socket. One connection carries one request; the answer is checked against
// the exchange before the caller sees any of it, and the events of one request come one at a time.
import { err, ok, type Result } from "../results/result.ts";
import { isErrorCode } from "../results/codes.ts";
import { chunkReader, chunkWriter } from "./chunks.ts";
import {
  type AnyExchange,
  type Envelope,
  ErrorReply,
  type EventOf,
  type MessageSchema,
  parseAs,
  parseEnvelope,
  type ReplyOf,
  type RequestOf,
  type Said,
  schemaOf,
} from "./exchange.ts";
import { buffered, type ByteConn, closeQuietly, readFrame, writeFrame } from "./frame.ts";
import { FRAME_MS, SILENCE_MS, WIRE_VERSION, WRITE_MS } from "./limits.ts";

export interface CallOptions<X extends AnyExchange> {
  readonly onEvent?: (event: EventOf<X>) => void | Promise<void>;
  /** Receives the exact bytes that precede the reply, in order. */
  readonly onChunk?: (bytes: Uint8Array) => void | Promise<void>;
  readonly upload?: Uint8Array;
  readonly signal?: AbortSignal;
  /** Gives up when no frame came for this long; keepalives count. */
  readonly silenceMs?: number;
}

/**
 * Sends one request and waits for its reply.
 * Fails with `peer-down` (nobody listens), `peer-silent`, the codes of frames, or the refusal's own
 * code when the other side answered with an error.
 */
export async function call<X extends AnyExchange>(
  path: string,
  exchange: X,
  body: RequestOf<X>,
  options: CallOptions<X> = {},
): Promise<Result<ReplyOf<X>>> {
  if (options.signal?.aborted) return err("frame-closed", "The call was cancelled");
  let conn: ByteConn;
  try {
    conn = buffered(await Deno.connect({ transport: "unix", path }));
  } catch {
    // Absent, stale and refused mean the same to a caller: nobody answers there.
    return err("peer-down", `Nobody listens on ${path}`);
  }
  const abort = () => closeQuietly(conn);
  options.signal?.addEventListener("abort", abort);
  try {
    // A signal that aborted while the connection was made tells nobody again.
    if (options.signal?.aborted) return err("frame-closed", "The call was cancelled");
    const sent = await sendRequest(conn, exchange, body, options.upload);
    // A server that refuses early closes its reading side: its answer is still worth reading.
    if (!sent.ok && sent.code !== "frame-closed") return sent;
    return await readAnswer(conn, exchange, options);
  } finally {
    options.signal?.removeEventListener("abort", abort);
    closeQuietly(conn);
  }
}

async function sendRequest(
  conn: ByteConn,
  exchange: AnyExchange,
  body: unknown,
  upload: Uint8Array | undefined,
): Promise<Result<null>> {
  const frame = { v: WIRE_VERSION, kind: exchange.request.shape.kind.value, body };
  const checked = parseAs(exchange.request, frame);
  if (!checked.ok) return err("request-invalid", checked.detail);
  const send = (value: unknown) => writeFrame(conn, value, WRITE_MS);
  const sent = await send(frame);
  if (!sent.ok || exchange.uploadMaxBytes === 0) return sent;
  const bytes = upload ?? new Uint8Array();
  if (bytes.length > exchange.uploadMaxBytes) {
    return err("frame-too-large", `${bytes.length} bytes exceed ${exchange.uploadMaxBytes}`);
  }
  const chunks = chunkWriter(send);
  const written = await chunks.write(bytes);
  return written.ok ? await chunks.end() : written;
}

async function readAnswer<X extends AnyExchange>(
  conn: ByteConn,
  exchange: X,
  options: CallOptions<X>,
): Promise<Result<ReplyOf<X>>> {
  const limits = { firstByteMs: options.silenceMs ?? SILENCE_MS, frameMs: FRAME_MS };
  const chunks = chunkReader(exchange.downloadMaxBytes);
  for (;;) {
    const raw = await readFrame(conn, limits);
    if (!raw.ok) {
      if (options.signal?.aborted) return err("frame-closed", "The call was cancelled");
      return raw.code === "frame-deadline" ? err("peer-silent", raw.detail) : raw;
    }
    const frame = parseEnvelope(raw.value);
    if (!frame.ok) return frame;
    if (frame.value.kind === "keepalive") continue;
    if (frame.value.kind === "error") return refusal(frame.value);
    if (frame.value.kind === "chunk" || frame.value.kind === "chunk_end") {
      const taken = chunks.take(frame.value);
      if (!taken.ok) return taken;
      if (taken.value.bytes.length > 0) await options.onChunk?.(taken.value.bytes);
      continue;
    }
    const event = saidAs<X["events"][number]>(exchange.events, frame.value);
    if (event !== null) {
      if (!event.ok) return event;
      await options.onEvent?.(event.value);
      continue;
    }
    if (chunks.isOpen()) return err("frame-malformed", "The reply came before the last chunk");
    const reply = saidAs<X["replies"][number]>(exchange.replies, frame.value);
    return reply ?? err("frame-malformed", `An unexpected reply: ${frame.value.kind}`);
  }
}

/** The frame as the one of the messages that has its kind, without its version; null when none has. */
function saidAs<M extends MessageSchema>(
  schemas: readonly M[],
  frame: Envelope,
): Result<Said<M>> | null {
  const schema = schemaOf(schemas, frame.kind);
  if (schema === undefined) return null;
  const said: unknown = { kind: frame.kind, body: frame.body };
  if (isSaid(schema, said)) return ok(said);
  const why = parseAs(schema, frame);
  return why.ok ? err("frame-malformed", `Not a ${frame.kind}`) : why;
}

function isSaid<M extends MessageSchema>(schema: M, said: unknown): said is Said<M> {
  return schema.safeParse({ v: WIRE_VERSION, ...Object(said) }).success;
}

function refusal(frame: Envelope): Result<never> {
  const parsed = parseAs(ErrorReply, frame);
  if (!parsed.ok) return parsed;
  const { code, detail } = parsed.value.body;
  return isErrorCode(code)
    ? err(code, detail)
    : err("version-skew", `The peer refused with the unknown code ${code}: ${detail}`);
}
