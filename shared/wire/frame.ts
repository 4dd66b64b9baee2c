// Frames: a 4-byte big-endian length, then that many bytes of canonical UTF-8 JSON.
// Reading refuses a length before reserving memory for it, and bounds the time of a frame from its
// first byte, so a slow writer cannot hold a place.
import { err, ok, type Result } from "../results/result.ts";
import { encodeCanonical, FRAME_BOUNDS, parseCanonical } from "./codec.ts";
import { MAX_FRAME_BYTES } from "./limits.ts";

const BLOCK_BYTES = 16_384;

/** A byte stream with the shape of `Deno.Conn`. */
export interface ByteConn {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

export interface ReadLimits {
  /** Time allowed until the first byte. */
  readonly firstByteMs: number;
  /** Time allowed from the first byte to the last. */
  readonly frameMs: number;
}

/**
 * Reads one frame and returns its value, unchecked against any schema; `null` when the peer closed
 * before a first byte. Fails with `frame-too-large`, `frame-deadline`, `frame-closed` or
 * `frame-malformed`. On a deadline the connection is closed, which is what ends the pending read.
 */
export async function readFrame(conn: ByteConn, limits: ReadLimits): Promise<Result<unknown>> {
  const deadline = startDeadline(conn, limits.firstByteMs);
  try {
    const prefix = new Uint8Array(4);
    const first = await conn.read(prefix);
    if (first === null) return closedOr(deadline, "before a frame began");
    deadline.restart(limits.frameMs);
    if (!await fill(conn, prefix, first)) return closedOr(deadline, "in a frame's length");
    const length = new DataView(prefix.buffer).getUint32(0);
    if (length > MAX_FRAME_BYTES) {
      return err("frame-too-large", `A frame of ${length} bytes exceeds ${MAX_FRAME_BYTES}`);
    }
    const bytes = new Uint8Array(length);
    if (!await fill(conn, bytes, 0)) return closedOr(deadline, "inside a frame");
    const value = parseCanonical(bytes, FRAME_BOUNDS);
    return value.ok ? value : err("frame-malformed", value.detail);
  } catch {
    // A read that fails on an open connection and one whose peer vanished are the same to us.
    return closedOr(deadline, "by a broken connection");
  } finally {
    deadline.stop();
  }
}

/** Writes one frame. Fails with `frame-too-large`, `frame-deadline` or `frame-closed`. */
export async function writeFrame(
  conn: ByteConn,
  value: unknown,
  writeMs: number,
): Promise<Result<null>> {
  const body = encodeCanonical(value);
  if (body.length > MAX_FRAME_BYTES) {
    return err("frame-too-large", `A frame of ${body.length} bytes exceeds ${MAX_FRAME_BYTES}`);
  }
  const bytes = new Uint8Array(4 + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, 4);
  const deadline = startDeadline(conn, writeMs);
  try {
    let sent = 0;
    while (sent < bytes.length) sent += await conn.write(bytes.subarray(sent));
    return ok(null);
  } catch {
    return closedOr(deadline, "while writing");
  } finally {
    deadline.stop();
  }
}

interface Deadline {
  restart(ms: number): void;
  stop(): void;
  hasPassed(): boolean;
}

function startDeadline(conn: ByteConn, ms: number): Deadline {
  let passed = false;
  const expire = () => {
    passed = true;
    closeQuietly(conn);
  };
  let timer = setTimeout(expire, ms);
  return {
    restart(next) {
      clearTimeout(timer);
      timer = setTimeout(expire, next);
    },
    stop: () => clearTimeout(timer),
    hasPassed: () => passed,
  };
}

/** Closes a connection that may be closed already. */
export function closeQuietly(conn: ByteConn): void {
  try {
    conn.close();
  } catch {
    // Closed before: nothing is left to do.
  }
}

function closedOr(deadline: Deadline, where: string): Result<never> {
  return deadline.hasPassed()
    ? err("frame-deadline", `The peer was too slow: closed ${where}`)
    : err("frame-closed", `The connection ended ${where}`);
}

/** A connection whose small reads are served from one larger one; for one reader at a time. */
export function buffered(conn: ByteConn): ByteConn {
  const block = new Uint8Array(BLOCK_BYTES);
  let held = block.subarray(0, 0);
  return {
    async read(into) {
      if (held.length === 0) {
        if (into.length >= BLOCK_BYTES) return await conn.read(into);
        const read = await conn.read(block);
        if (read === null) return null;
        held = block.subarray(0, read);
      }
      const taken = held.subarray(0, into.length);
      into.set(taken);
      held = held.subarray(taken.length);
      return taken.length;
    },
    write: (bytes) => conn.write(bytes),
    close: () => conn.close(),
  };
}

async function fill(conn: ByteConn, bytes: Uint8Array, from: number): Promise<boolean> {
  let at = from;
  while (at < bytes.length) {
    const read = await conn.read(bytes.subarray(at));
    if (read === null) return false;
    at += read;
  }
  return true;
}
