// Reads a chained log record by record from a byte offset, in bounded memory. It never writes, never
// skips, and stops at the first line that is not the record that must come next.
import type { Disk, DiskFile } from "../disk/disk.ts";
import { attempt } from "../disk/durable.ts";
import { ok, type Result } from "../results/result.ts";
import { encodeUtf8 } from "../wire/codec.ts";
import { hashInPlace, LINE_FEED, type Piece, piecesOf, startsWith, textOf } from "./chain_lines.ts";
import {
  type Damage,
  damage,
  damageErr,
  domainPrefix,
  type Expected,
  judgeLine,
  lineStart,
  MAX_LINE_BYTES,
} from "./chain_record.ts";

/** Where to start: a byte offset at a line's start and what that line must say. */
export type Position = { readonly offset: number; readonly next: Expected | null };
/** The start of a file. */
export const FILE_START: Position = { offset: 0, next: null };

export type ChainRecord = {
  readonly n: number;
  readonly hash: string;
  /** Bytes from the line's first to past its line feed. */
  readonly start: number;
  readonly end: number;
  /** The text of the line; empty when it was not parsed. */
  readonly line: string;
  /** The parsed record; null when it was not parsed. */
  readonly value: unknown;
};

/** A last line without its end, or (`nul`) with holes that only a power cut leaves. */
export type TornTail = { readonly offset: number; readonly why: "partial" | "nul" };

export type Scanned =
  | { readonly is: "record"; readonly record: ChainRecord }
  | { readonly is: "damage"; readonly damage: Damage }
  | { readonly is: "torn"; readonly torn: TornTail };

/**
 * Scans an open log; lines that start below `sealedBelow` are hashed but not parsed. The last item is
 * a damage, a torn tail, or the last record. Throws DiskError.
 */
export function* scanFile(
  file: DiskFile,
  domain: string,
  from: Position,
  sealedBelow: number,
): Generator<Scanned> {
  const size = file.stat().size;
  const prefix = encodeUtf8(domainPrefix(domain));
  let next = from.next;
  for (const piece of piecesOf(file, from.offset, prefix.length)) {
    if (piece.is === "rest") {
      return yield { is: "torn", torn: { offset: piece.offset, why: "partial" } };
    }
    if (piece.is === "too_long") return yield tooLong(next, piece.offset);
    for (const item of scanPiece(piece, { prefix, next, sealedBelow, size })) {
      yield item;
      if (item.is !== "record") return;
      next = { n: item.record.n + 1, prev: item.record.hash };
    }
  }
}

type Context = {
  readonly prefix: Uint8Array;
  readonly next: Expected | null;
  readonly sealedBelow: number;
  readonly size: number;
};

function* scanPiece(piece: Piece, context: Context): Generator<Scanned> {
  const { bytes, offset } = piece;
  const { prefix, sealedBelow, size } = context;
  const isSealed = offset + bytes.length - piece.from <= sealedBelow;
  const text = isSealed ? null : textOf(bytes, piece.from, bytes.length);
  let { next } = context;
  let textFrom = 0;
  for (let from = piece.from; from < bytes.length;) {
    const to = bytes.indexOf(LINE_FEED, from);
    const start = offset + from - piece.from;
    const end = start + to - from + 1;
    if (to - from > MAX_LINE_BYTES) return yield tooLong(next, start);
    const textTo = text === null ? 0 : text.indexOf("\n", textFrom);
    const isVouched = start < sealedBelow && next !== null &&
      startsWith(bytes, from, lineStart(next));
    let n = next?.n ?? 0;
    let value: unknown = null;
    let line: string | null = "";
    if (!isVouched) {
      line = text === null ? textOf(bytes, from, to) : text.slice(textFrom, textTo);
      const judged = judgeLine(line, next, start);
      if (!judged.ok) return yield damaged(judged.damage, end >= size);
      n = judged.n;
      value = judged.value;
    }
    const hash = hashInPlace(bytes, prefix, from, to);
    yield { is: "record", record: { n, hash, start, end, line: line ?? "", value } };
    next = { n: n + 1, prev: hash };
    textFrom = textTo + 1;
    from = to + 1;
  }
}

function tooLong(next: Expected | null, offset: number): Scanned {
  const detail = `The line is longer than ${MAX_LINE_BYTES} bytes`;
  return { is: "damage", damage: damage("too_long_line", next?.n ?? 0, offset, detail) };
}

/** NUL bytes in the last line are what an unfinished write leaves; no writer puts them there. */
function damaged(found: Damage, isLast: boolean): Scanned {
  if (found.name === "nul" && isLast) {
    return { is: "torn", torn: { offset: found.offset, why: "nul" } };
  }
  return { is: "damage", damage: found };
}

/**
 * Reads a log's records. A torn tail ends the reading without a failure, as its writer may be in the
 * middle of that line; a damaged record yields `log-broken` and ends it.
 */
export function* readChain(
  disk: Disk,
  path: string,
  domain: string,
  from: Position = FILE_START,
): Generator<Result<ChainRecord>> {
  const opened = attempt(() => disk.open(path, "read"));
  if (!opened.ok) return yield opened;
  const file = opened.value;
  try {
    const items = scanFile(file, domain, from, 0);
    for (;;) {
      const item = attempt(() => items.next());
      if (!item.ok) return yield item;
      if (item.value.done === true) return;
      const scanned = item.value.value;
      if (scanned.is === "torn") {
        if (scanned.torn.why === "partial") return;
        const found = damage("nul", -1, scanned.torn.offset, "The last line holds NUL bytes");
        return yield damageErr(path, found);
      }
      if (scanned.is === "damage") return yield damageErr(path, scanned.damage);
      yield ok(scanned.record);
    }
  } finally {
    file.close();
  }
}
