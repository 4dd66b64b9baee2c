// Re-derives a chained log from its bytes and compares it with a head. It never writes and never
// trusts anything the log says about itself beyond what its hashes bear out.
import type { Disk } from "../disk/disk.ts";
import { attempt } from "../disk/durable.ts";
import { ok, type Result } from "../results/result.ts";
import { type Damage, damage, type Depth, type Head, isObject } from "./chain_record.ts";
import { FILE_START, type Position, scanFile, type TornTail } from "./chain_reader.ts";
import type { Place } from "./head_file.ts";

export type Scan = {
  /** Records seen by this scan. */
  readonly records: number;
  readonly last: Place | null;
  /** What the first record of the file says it follows, when it opens a rotated file. */
  readonly previous: { readonly file: string; readonly n: number; readonly hash: string } | null;
  readonly torn: TornTail | null;
  readonly damage: Damage | null;
  /** The hash found at the watched number, null when the scan did not pass it. */
  readonly watched: string | null;
  readonly size: number;
};

export type VerifyReport = Scan & {
  /** The first thing wrong, null when the log is whole and agrees with the head. */
  readonly verdict: Damage | null;
};

function sealed(depth: Depth): number {
  return depth === "sealed" ? Infinity : 0;
}

function placeOf({ n, hash, start, end }: Place): Place {
  return { n, hash, start, end };
}

function previousOf(value: unknown): Scan["previous"] {
  if (!isObject(value) || !isObject(value.previous)) return null;
  const { file, n, hash } = value.previous;
  if (typeof file !== "string" || typeof n !== "number" || typeof hash !== "string") return null;
  return { file, n, hash };
}

/** Scans a file from a position, watching for the hash at number `watch`. */
export function scanLog(
  disk: Disk,
  path: string,
  domain: string,
  o: { readonly from: Position; readonly sealedBelow: number; readonly watch: number | null },
): Result<Scan> {
  return attempt(() => {
    const file = disk.open(path, "read");
    try {
      let scan: Scan = {
        records: 0,
        last: null,
        previous: null,
        torn: null,
        damage: null,
        watched: null,
        size: file.stat().size,
      };
      let records = 0;
      let last: Place | null = null;
      for (const item of scanFile(file, domain, o.from, o.sealedBelow)) {
        if (item.is === "torn") scan = { ...scan, torn: item.torn };
        else if (item.is === "damage") scan = { ...scan, damage: item.damage };
        else {
          if (records === 0) scan = { ...scan, previous: previousOf(item.record.value) };
          if (item.record.n === o.watch) scan = { ...scan, watched: item.record.hash };
          records++;
          last = item.record;
        }
      }
      return { ...scan, records, last: last === null ? null : placeOf(last) };
    } finally {
      file.close();
    }
  });
}

/** Compares a scan with the head that should hold: damage first, then length, then the hash. */
export function compareWithHead(scan: Scan, head: Head): Damage | null {
  return scan.damage ?? againstHead(scan.last, scan.watched, head);
}

/**
 * Verifies one file. With a head it must hold exactly that record at that number; without one, only
 * its inner order is proved. A torn tail is a verdict here, as a log at rest has none.
 */
export function verifyChain(
  disk: Disk,
  path: string,
  domain: string,
  o: { readonly head: Head | null; readonly depth: Depth },
): Result<VerifyReport> {
  const scan = scanLog(disk, path, domain, {
    from: FILE_START,
    sealedBelow: sealed(o.depth),
    watch: o.head?.n ?? null,
  });
  if (!scan.ok) return scan;
  return ok({ ...scan.value, verdict: verdictOf(scan.value, o.head) });
}

function verdictOf(scan: Scan, head: Head | null): Damage | null {
  const n = (scan.last?.n ?? -1) + 1;
  const found = head === null ? scan.damage : compareWithHead(scan, head);
  if (found !== null) return found;
  if (scan.torn !== null) {
    return damage("torn", n, scan.torn.offset, "The last line was never finished");
  }
  return scan.last === null ? damage("no_genesis", 0, 0, "The log is empty") : null;
}

function againstHead(last: Head | null, watched: string | null, head: Head): Damage | null {
  const n = last?.n ?? -1;
  if (n < head.n) {
    const detail = `The log ends at record ${n}, its head is record ${head.n}`;
    return damage("shorter_than_head", head.n, 0, detail);
  }
  if (watched === head.hash) return null;
  return damage("hash_differs", head.n, 0, "The record is not the one that was acknowledged");
}
