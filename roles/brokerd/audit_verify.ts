// Re-derives the whole audit log, names what is wrong with it, and what the owner declared lost.
//
// 1. It never writes. What it calls whole follows from the first record to the head without a gap.
// 2. A gap counts only when a record of the log declares it, and what was put aside is still there as
//    it was then.
import { FILE_START, readChain, scanFile } from "../../shared/chain/chain_reader.ts";
import type { Damage, Head } from "../../shared/chain/chain_record.ts";
import type { Clock } from "../../shared/clock/clock.ts";
import type { Disk, DiskFile } from "../../shared/disk/disk.ts";
import { attempt, readBytes } from "../../shared/disk/durable.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { AUDIT_DOMAIN, type Declared, declaredIn } from "./audit_records.ts";
import { digestOf } from "./audit_repair.ts";

/** What a repair would put aside: a file's name, and the first and last record that would be lost. */
export type Broken = { readonly file: string; readonly from: number; readonly to: number };

export type Verified = {
  readonly is_whole: boolean;
  readonly records: number;
  readonly files: number;
  readonly head: Head | null;
  readonly finding: string;
  readonly broken: Broken | null;
};

export type Progress = (records: number, bytes: number, totalBytes: number) => void;

/** Hashes every line of every file, with pauses in which the sockets are served. */
export async function verifyAll(
  { disk, clock }: { readonly disk: Disk; readonly clock: Clock },
  paths: readonly string[],
  head: Head | null,
  against: Head | null,
  onProgress: Progress,
): Promise<Result<Verified>> {
  const sizes = attempt(() => paths.map((path) => disk.stat(path).size));
  if (!sizes.ok) return sizes;
  const total = sizes.value.reduce((sum, size) => sum + size, 0);
  const heads = [head, against].filter((one) => one !== null);
  const wanted = new Map(heads.map((one) => [one.n, one]));
  const lost: string[] = [];
  const end = (finding: string, broken: Broken | null = null): Result<Verified> => {
    const is_whole = finding === "";
    const whole = lost.length === 0 ? "The log is whole" : `Whole but for ${lost.join("; ")}`;
    const said = (is_whole ? whole : finding).slice(0, 1_000);
    return ok({ is_whole, records, files: paths.length, head, finding: said, broken });
  };
  // Told at the end: the declaration of it may lie behind damage, which is told first.
  let gap: [finding: string, broken: Broken] | null = null;
  let records = 0;
  let bytes = 0;
  let last: { file: string; n: number; hash: string } | null = null;
  const lastOf = (i: number) => (firstOf(disk, paths[i + 1])?.n ?? (head?.n ?? -1) + 1) - 1;
  for (const [i, path] of paths.entries()) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const opened = attempt(() => disk.open(path, "read"));
    if (!opened.ok) return opened;
    try {
      for (const item of scanFile(opened.value, AUDIT_DOMAIN, FILE_START, Infinity)) {
        if (item.is === "torn") {
          const broken = { file: name, from: (last?.n ?? -1) + 1, to: lastOf(i) };
          return end(`${name}: torn tail: the last line was never finished`, broken);
        }
        if (item.is === "damage") {
          const { atRecord, detail, name: what } = item.damage;
          const kind = kindOf(opened.value, item.damage, endBefore(disk, paths[i + 1], head));
          const from = Math.max(0, atRecord);
          const said = `${name}, record ${atRecord}: ${kind}: ${detail} (${what})`;
          return end(said, { file: name, from, to: lastOf(i) });
        }
        const { n, hash, value } = item.record;
        if (value !== null && !follows(value, last)) {
          const next = (last?.n ?? -1) + 1;
          const declared = declaredGap(disk, paths.slice(i), value);
          const missing = declared === null
            ? `it does not follow ${last?.file ?? "nothing"}`
            : keptProblem(disk, path, declared);
          if (missing !== null) {
            const gone = Object(Reflect.get(Object(value), "previous")).file;
            const file = typeof gone === "string" && gone !== last?.file ? gone : name;
            gap ??= [`${name}: missing file: ${missing}`, { file, from: next, to: n - 1 }];
          }
          if (declared !== null) lost.push(lossOf(declared, next));
        }
        if (n === wanted.get(n)?.n && hash === wanted.get(n)?.hash) wanted.delete(n);
        last = { file: name, n, hash };
        if (++records % 2_048 !== 0) continue;
        onProgress(records, bytes + item.record.end, total);
        await clock.sleep(0);
      }
    } finally {
      opened.value.close();
    }
    bytes += sizes.value[i] ?? 0;
  }
  onProgress(records, total, total);
  if (gap !== null) return end(...gap);
  const [missing] = wanted.values();
  if (missing === undefined) return end("");
  const kind = missing.n > (last?.n ?? -1) ? "deletion at its end" : "fork";
  // A head that only the asker knows is no damage that could be put aside.
  const broken = missing === head && last !== null
    ? { file: last.file, from: Math.min(last.n + 1, head.n), to: head.n }
    : null;
  return end(`${kind}: the log does not hold the head ${missing.n}:${missing.hash}`, broken);
}

/**
 * What was done to the record: taken out, put in, or changed. After a changed record the rest still
 * leads to the hash that is known for the file's end; after a foreign one it does not.
 */
function kindOf(file: DiskFile, found: Damage, endHash: string | null): string {
  if (found.name === "records_missing") return "deletion";
  if (found.name === "records_repeated") return "splice";
  if (found.name !== "chain_broken") return "edit";
  file.seek(found.offset);
  const start = decodeUtf8(readBytes(file, 100));
  const own = /^\{"v":1,"n":[0-9]+,"prev":"([0-9a-f]{64})"/.exec(start.ok ? start.value : "")?.[1];
  if (own === undefined) return "edit";
  const from = { offset: found.offset, next: { n: found.atRecord, prev: own } };
  let last: string | null = null;
  for (const item of scanFile(file, AUDIT_DOMAIN, from, 0)) {
    last = item.is === "record" ? item.record.hash : null;
  }
  return last === endHash ? "edit" : "splice";
}

/** A file's first record, null when there is none that can be read. */
export function firstOf(
  disk: Disk,
  path: string | undefined,
): { n: number; value: unknown } | null {
  if (path === undefined) return null;
  // Leaving the loop closes the file.
  for (const first of readChain(disk, path, AUDIT_DOMAIN)) return first.ok ? first.value : null;
  return null;
}

/** The hash that the file before `path` must end in: what `path` follows, or the head. */
function endBefore(disk: Disk, path: string | undefined, head: Head | null): string | null {
  if (path === undefined) return head?.hash ?? null;
  const { hash } = Object(Reflect.get(Object(firstOf(disk, path)?.value), "previous"));
  return typeof hash === "string" ? hash : null;
}

/** Whether a file's first record names the end of the file before it, or begins the log. */
function follows(value: unknown, last: { file: string; n: number; hash: string } | null): boolean {
  const previous: unknown = Reflect.get(Object(value), "previous");
  if (previous === undefined || last === null) return previous === undefined && last === null;
  const { file, hash } = last;
  const said = Object(previous);
  return Reflect.get(said, "file") === file && Reflect.get(said, "hash") === hash;
}

/** What the owner declared about the gap before a file, in its first record or later; else null. */
function declaredGap(disk: Disk, paths: readonly string[], first: unknown): Declared | null {
  const to = Number(Reflect.get(Object(first), "n")) - 1;
  for (const path of paths) {
    for (const item of readChain(disk, path, AUDIT_DOMAIN)) {
      if (!item.ok) break;
      const said = declaredIn(item.value.value);
      if (said !== null && said.to === to) return said;
    }
  }
  return null;
}

function keptProblem(disk: Disk, path: string, { kept_as, sha256 }: Declared): string | null {
  if (kept_as === null) return null;
  const now = digestOf(disk, path.replace(/[^/]*$/, kept_as));
  return now.ok && now.value.sha256 === sha256 ? null : `${kept_as}, put aside, is not as it was`;
}

function lossOf({ from, to, kept_as, finding }: Declared, first: number): string {
  const which = to < first ? "all records before" : `records ${first} to ${to}`;
  const kept = kept_as === null
    ? "gone"
    : `put aside as ${kept_as}, damaged from record ${from} on`;
  return `${which}, ${kept}, as the owner declared: ${finding}`;
}
