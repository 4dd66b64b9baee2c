// Exact bytes over frames: pieces numbered from 0, closed by their count and SHA-256.
import { createHash } from "node:crypto";
import { err, ok, type Result } from "../results/result.ts";
import { fromBase64, toBase64 } from "./codec.ts";
import { Chunk, ChunkEnd, type Envelope, parseAs } from "./exchange.ts";
import { MAX_CHUNK_BYTES, WIRE_VERSION } from "./limits.ts";

type Send = (frame: unknown) => Promise<Result<null>>;

/** The sending side of one run of chunks. */
export interface ChunkWriter {
  /** Sends bytes in pieces of at most 48 KiB. */
  write(bytes: Uint8Array): Promise<Result<null>>;
  /** Closes the run. */
  end(): Promise<Result<null>>;
  hasStarted(): boolean;
}

export function chunkWriter(send: Send): ChunkWriter {
  const hash = createHash("sha256");
  let seq = 0;
  let total = 0;
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
        const piece = bytes.subarray(at, at + MAX_CHUNK_BYTES);
        hash.update(piece);
        total += piece.length;
        const body = { seq: seq++, base64: toBase64(piece) };
        const sent = await send({ v: WIRE_VERSION, kind: "chunk", body });
        if (!sent.ok) return sent;
      }
      return ok(null);
    },
    end() {
      const body = { bytes: total, sha256: hash.digest("hex") };
      return send({ v: WIRE_VERSION, kind: "chunk_end", body });
    },
    hasStarted: () => seq > 0,
  };
}

/** The receiving side: checks order, total, cap and hash. */
export interface ChunkReader {
  /** Takes a `chunk` or `chunk_end` frame; the value says whether the run is closed. */
  take(frame: Envelope): Result<{ done: boolean; bytes: Uint8Array }>;
  isOpen(): boolean;
}

export function chunkReader(maxBytes: number): ChunkReader {
  const hash = createHash("sha256");
  let seq = 0;
  let total = 0;
  let isDone = false;
  const piece = (frame: Envelope): Result<{ done: boolean; bytes: Uint8Array }> => {
    const chunk = parseAs(Chunk, frame);
    if (!chunk.ok) return chunk;
    if (chunk.value.body.seq !== seq) return err("frame-malformed", "A chunk is out of order");
    const bytes = fromBase64(chunk.value.body.base64);
    if (!bytes.ok) return err("frame-malformed", bytes.detail);
    if (bytes.value.length === 0) return err("frame-malformed", "A chunk is empty");
    seq++;
    total += bytes.value.length;
    if (total > maxBytes) {
      return err("frame-too-large", `More than ${maxBytes} bytes were sent in chunks`);
    }
    hash.update(bytes.value);
    return ok({ done: false, bytes: bytes.value });
  };
  const end = (frame: Envelope): Result<{ done: boolean; bytes: Uint8Array }> => {
    const last = parseAs(ChunkEnd, frame);
    if (!last.ok) return last;
    isDone = true;
    const isWhole = last.value.body.bytes === total &&
      last.value.body.sha256 === hash.digest("hex");
    return isWhole
      ? ok({ done: true, bytes: new Uint8Array() })
      : err("frame-malformed", "The chunks do not add up to what their end says");
  };
  return {
    take(frame) {
      if (isDone) return err("frame-malformed", "A chunk came after the last one");
      return frame.kind === "chunk" ? piece(frame) : end(frame);
    },
    isOpen: () => seq > 0 && !isDone,
  };
}

/** All of a stream, or null when it is longer than allowed: then no more of it is read. */
export async function readCapped(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) return null;
    read.push(piece);
  }
  return joinBytes(read);
}

/** Joins pieces into one array. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
