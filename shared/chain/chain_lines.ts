// Splits a log's bytes into whole lines, a bounded piece at a time. Reading a log is dominated by
// costs per line, so a piece is decoded in one go and a line is hashed where it lies: the domain's
// prefix is written over the end of the line before, which is done with by then.
import { hash } from "node:crypto";
import type { DiskFile } from "../disk/disk.ts";
import { decodeUtf8 } from "../wire/codec.ts";
import { MAX_LINE_BYTES } from "./chain_record.ts";

const CHUNK_BYTES = 262_144;
export const LINE_FEED = 10;

/** Whole lines in `bytes` from `from` on; what lies before is room for the prefix. */
export type Piece = {
  readonly is: "lines";
  readonly bytes: Uint8Array;
  readonly from: number;
  /** Place in the file of the byte at `from`. */
  readonly offset: number;
};
/** What follows the last whole line: nothing that ends, or more than a line may have. */
export type Rest =
  | { readonly is: "rest"; readonly offset: number }
  | { readonly is: "too_long"; readonly offset: number };

/** Pieces of an open file from `offset` on, each with `room` spare bytes. Throws DiskError. */
export function* piecesOf(file: DiskFile, offset: number, room: number): Generator<Piece | Rest> {
  file.seek(offset);
  let carry = new Uint8Array();
  let start = offset;
  for (;;) {
    const chunk = new Uint8Array(room + carry.length + CHUNK_BYTES);
    chunk.set(carry, room);
    const got = file.read(chunk.subarray(room + carry.length));
    if (got === 0) break;
    const filled = chunk.subarray(0, room + carry.length + got);
    const whole = Math.max(room, filled.lastIndexOf(LINE_FEED) + 1);
    carry = filled.slice(whole);
    if (whole > room) {
      yield { is: "lines", bytes: filled.subarray(0, whole), from: room, offset: start };
    }
    start += whole - room;
    if (carry.length > MAX_LINE_BYTES) return yield { is: "too_long", offset: start };
  }
  if (carry.length > 0) yield { is: "rest", offset: start };
}

/** The text of the lines in `from..to`, null when it is not UTF-8 somewhere. */
export function textOf(bytes: Uint8Array, from: number, to: number): string | null {
  const text = decodeUtf8(bytes.subarray(from, to));
  return text.ok ? text.value : null;
}

/** Whether the bytes at `from` are this ASCII text. */
export function startsWith(bytes: Uint8Array, from: number, ascii: string): boolean {
  for (let i = 0; i < ascii.length; i++) {
    if (bytes[from + i] !== ascii.charCodeAt(i)) return false;
  }
  return true;
}

/** Hash of the line in `from..to` after `prefix`, which overwrites the bytes before `from`. */
export function hashInPlace(
  bytes: Uint8Array,
  prefix: Uint8Array,
  from: number,
  to: number,
): string {
  bytes.set(prefix, from - prefix.length);
  return hash("sha256", bytes.subarray(from - prefix.length, to), "hex");
}
