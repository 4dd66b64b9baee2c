// Reads a chained log record by record from a byte offset, in bounded memory. It never writes, never
// skips, and stops at the first line that is not the record that must come next.
import type { Disk, DiskFile } from "../disk/disk.ts";
import { attempt } from "../disk/durable.ts";
import { ok, type Result } from "../results/result.ts";
import { decodeUtf8 } from "../wire/codec.ts";
import {
  type Damage,
  damage,
  damageErr,
  type Expected,
  hashLine,
  judgeLine,
  MAX_LINE_BYTES,
} from "./chain_record.ts";

const CHUNK_BYTES = 262_144;
const LINE_FEED = 10;

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
  readonly line: string;
  /** The parsed record; null when the scan was `sealed`. */
  readonly value: unknown;
};

/** A last line without its end, or (`nul`) with holes that only a power cut leaves. */
export type TornTail = { readonly offset: number; readonly why: "partial" | "nul" };

export type Scanned =
  | { readonly is: "record"; readonly record: ChainRecord }
  | { readonly is: "damage"; readonly damage: Damage }
  | { readonly is: "torn"; readonly torn: TornTail };

type RawLine =
  | { readonly is: "line"; readonly line: string; readonly start: number; readonly end: number }
  | { readonly is: "bad"; readonly why: "not_utf8" | "too_long_line"; readonly start: number }
  | { readonly is: "rest"; readonly start: number };

/** Whole lines of an open file from `offset`; throws DiskError. */
function* rawLines(file: DiskFile, offset: number): Generator<RawLine> {
  file.seek(offset);
  let carry = new Uint8Array();
  let start = offset;
  for (;;) {
    const chunk = new Uint8Array(carry.length + CHUNK_BYTES);
    chunk.set(carry);
    const got = file.read(chunk.subarray(carry.length));
    if (got === 0) break;
    const bytes = chunk.subarray(0, carry.length + got);
    const whole = bytes.lastIndexOf(LINE_FEED) + 1;
    if (whole > 0) yield* linesOf(bytes.subarray(0, whole), start);
    carry = bytes.slice(whole);
    start += whole;
    if (carry.length > MAX_LINE_BYTES) return yield { is: "bad", why: "too_long_line", start };
  }
  if (carry.length > 0) yield { is: "rest", start };
}

function* linesOf(bytes: Uint8Array, offset: number): Generator<RawLine> {
  const decoded = decodeUtf8(bytes);
  let from = 0;
  let textFrom = 0;
  while (from < bytes.length) {
    const to = bytes.indexOf(LINE_FEED, from);
    const place = { start: offset + from, end: offset + to + 1 };
    if (to - from > MAX_LINE_BYTES) {
      return yield { is: "bad", why: "too_long_line", start: place.start };
    }
    if (decoded.ok) {
      const textTo = decoded.value.indexOf("\n", textFrom);
      yield { is: "line", line: decoded.value.slice(textFrom, textTo), ...place };
      textFrom = textTo + 1;
    } else {
      const one = decodeUtf8(bytes.subarray(from, to));
      if (!one.ok) return yield { is: "bad", why: "not_utf8", start: place.start };
      yield { is: "line", line: one.value, ...place };
    }
    from = to + 1;
  }
}

/** Scans an open log; lines that start below `sealedBelow` are not parsed. The last item is a damage, a torn tail, or the last record; throws DiskError. */
export function* scanFile(
  file: DiskFile,
  domain: string,
  from: Position,
  sealedBelow: number,
): Generator<Scanned> {
  const size = file.stat().size;
  let next = from.next;
  for (const raw of rawLines(file, from.offset)) {
    if (raw.is === "rest") return yield { is: "torn", torn: { offset: raw.start, why: "partial" } };
    if (raw.is === "bad") {
      const detail = raw.why === "not_utf8"
        ? "The line is not UTF-8"
        : `The line is longer than ${MAX_LINE_BYTES} bytes`;
      return yield { is: "damage", damage: damage(raw.why, next?.n ?? 0, raw.start, detail) };
    }
    const depth = raw.start < sealedBelow ? "sealed" : "parsed";
    const judged = judgeLine(raw.line, next, raw.start, depth);
    if (!judged.ok) {
      if (judged.damage.name === "nul" && raw.end >= size) {
        return yield { is: "torn", torn: { offset: raw.start, why: "nul" } };
      }
      return yield { is: "damage", damage: judged.damage };
    }
    const hash = hashLine(domain, raw.line);
    next = { n: judged.n + 1, prev: hash };
    const { line, start, end } = raw;
    yield { is: "record", record: { n: judged.n, hash, start, end, line, value: judged.value } };
  }
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
