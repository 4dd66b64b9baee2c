// Re-derives a chained log from its bytes and compares it with a head. It never writes and never trusts
// anything the log says about itself beyond what its hashes bear out.
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
};

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
      const scan: { -readonly [K in keyof Scan]: Scan[K] } = {
        records: 0,
        last: null,
        previous: null,
        torn: null,
        damage: null,
        watched: null,
      };
      for (const item of scanFile(file, domain, o.from, o.sealedBelow)) {
        if (item.is === "torn") scan.torn = item.torn;
        else if (item.is === "damage") scan.damage = item.damage;
        else {
          const { n, hash, start, end, value } = item.record;
          if (scan.records++ === 0) scan.previous = previousOf(value);
          if (n === o.watch) scan.watched = hash;
          scan.last = { n, hash, start, end };
        }
      }
      return scan;
    } finally {
      file.close();
    }
  });
}

/** Compares a scan with the head that should hold: damage first, then length, then the hash. */
export function compareWithHead(scan: Scan, head: Head): Damage | null {
  const n = scan.last?.n ?? -1;
  if (scan.damage !== null) return scan.damage;
  if (n < head.n) {
    const detail = `The log ends at record ${n}, its head is record ${head.n}`;
    return damage("shorter_than_head", head.n, 0, detail);
  }
  if (scan.watched === head.hash) return null;
  return damage("hash_differs", head.n, 0, "The record is not the one that was acknowledged");
}

/**
 * Verifies one file. With a head it must hold exactly that record at that number; without one, only
 * its inner order is proved. A torn tail is a verdict here, as a log at rest has none.
 *
 * @returns the scan and the first thing wrong, null when the log is whole and agrees with the head
 */
export function verifyChain(
  disk: Disk,
  path: string,
  domain: string,
  { head, depth }: { readonly head: Head | null; readonly depth: Depth },
): Result<Scan & { readonly verdict: Damage | null }> {
  const sealedBelow = depth === "sealed" ? Infinity : 0;
  const o = { from: FILE_START, sealedBelow, watch: head?.n ?? null };
  const scan = scanLog(disk, path, domain, o);
  if (!scan.ok) return scan;
  const { last, torn } = scan.value;
  const found = head === null ? scan.value.damage : compareWithHead(scan.value, head);
  const verdict = found ??
    (torn !== null
      ? damage("torn", (last?.n ?? -1) + 1, torn.offset, "The last line was never finished")
      : last === null
      ? damage("no_genesis", 0, 0, "The log is empty")
      : null);
  return ok({ ...scan.value, verdict });
}
