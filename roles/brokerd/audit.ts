// The audit log of the house: chained, one file a month, one writer.
//
// 1. A record is durable, and its head too, before anything it speaks of goes on.
// 2. A log that does not bear out its head is never continued: `audit-broken`.
// 3. Callers keep the heads they were shown; one that this log does not hold is an alarm.
import type { Clock } from "../../shared/clock/clock.ts";
import { isoTime } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import { FILE_START, readChain, scanFile } from "../../shared/chain/chain_reader.ts";
import type { Damage, Head } from "../../shared/chain/chain_record.ts";
import { scanLog } from "../../shared/chain/chain_verify.ts";
import type { Chain, Genesis } from "../../shared/chain/chain_writer.ts";
import { openChain } from "../../shared/chain/chained_log.ts";
import { readHead } from "../../shared/chain/head_file.ts";
import type { Disk, DiskFile } from "../../shared/disk/disk.ts";
import { attempt, mustEnd, readBytes } from "../../shared/disk/durable.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { WIRE_VERSION } from "../../shared/wire/limits.ts";
import {
  AUDIT_DOMAIN,
  type AuditRecord,
  auditRecordOf,
  type NewAuditRecord,
} from "./audit_records.ts";

const REMEMBERED_HEADS = 20_000;

export type AuditPorts = {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends the process: nobody knows what is on the disk. Does not return in a running role. */
  readonly fatal: (detail: string) => void;
};

export type Verified = {
  readonly is_whole: boolean;
  readonly records: number;
  readonly files: number;
  readonly head: Head | null;
  readonly finding: string;
};

export interface Audit {
  /** Appends durably, all or (but for a crash) none. A failure of the disk's sync ends the process. */
  append(...records: readonly NewAuditRecord[]): Result<Head>;
  head(): Head;
  /** Whether this log holds that record. */
  holds(witness: Head): boolean;
  /** The last `count` lines as stored up to record `end`, oldest first. */
  tail(count: number, end?: number): Result<readonly string[]>;
  /** Every record of every file, oldest first, until one is damaged. */
  records(): Generator<AuditRecord>;
  verify(against: Head | null, onProgress: Progress): Promise<Result<Verified>>;
  /** Goes on in the file of the present month when it is another; call when nothing runs. */
  rotateIfDue(): Result<null>;
  close(): void;
}

type Progress = (records: number, bytes: number, totalBytes: number) => void;

/** Opens the log in `folder` and passes what its newest file holds to `onRecord`, oldest first. */
export function openAudit(
  ports: AuditPorts,
  folder: string,
  onRecord: (record: AuditRecord) => void,
): Result<Audit> {
  const month = () => `${isoTime(ports.clock.nowUnixMs()).slice(0, 7)}.jsonl`;
  const headPath = `${folder}/head.json`;
  const headFile = readHead(ports.disk, headPath);
  const files = auditFiles(ports.disk, folder);
  if (!files.ok) return files;
  if (!headFile.ok) return broken(headFile);
  const path = `${folder}/${headFile.value?.file ?? files.value.at(-1) ?? month()}`;
  const opened = openChain({
    disk: ports.disk,
    path,
    headPath,
    domain: AUDIT_DOMAIN,
    genesis: genesis(ports),
    repair: (finding) => ({
      kind: "repair",
      time: isoTime(ports.clock.nowUnixMs()),
      found: finding.found,
      extra_records: finding.extraRecords,
      cut_bytes: finding.cutBytes,
      cut_sha256: finding.cutSha256,
    }),
    check: "tail",
  });
  if (!opened.ok) return broken(opened);
  const heads = new Map<number, string>();
  for (const item of readChain(ports.disk, path, AUDIT_DOMAIN, FILE_START)) {
    if (!item.ok) {
      opened.value.chain.close();
      return broken(item);
    }
    heads.set(item.value.n, item.value.hash);
    const record = auditRecordOf(item.value.value);
    if (record !== null) onRecord(record);
  }
  return ok(auditOf(ports, folder, opened.value.chain, heads, month));
}

function broken(failure: Err): Err {
  return failure.code === "log-broken" ? err("audit-broken", failure.detail) : failure;
}

function genesis(ports: AuditPorts): Genesis {
  return {
    kind: "open",
    time: isoTime(ports.clock.nowUnixMs()),
    log: "audit",
    role: "brokerd",
    protocol: WIRE_VERSION,
    nonce: ports.random.bytes(16).toHex(),
  };
}

function auditFiles(disk: Disk, folder: string): Result<string[]> {
  return attempt(() =>
    disk.list(folder).map((entry) => entry.name)
      .filter((name) => /^[0-9]{4}-[0-9]{2}\.jsonl$/.test(name))
  );
}

function auditOf(
  ports: AuditPorts,
  folder: string,
  first: Chain,
  heads: Map<number, string>,
  month: () => string,
): Audit {
  let chain = first;
  const remember = (head: Head) => {
    heads.set(head.n, head.hash);
    if (heads.size > REMEMBERED_HEADS) {
      const oldest = heads.keys().next();
      if (oldest.done !== true) heads.delete(oldest.value);
    }
  };
  const paths = () => {
    const names = auditFiles(ports.disk, folder);
    return names.ok ? names.value.map((name) => `${folder}/${name}`) : [];
  };
  const guarded = <T>(result: Result<T>): Result<T> => {
    if (!result.ok && mustEnd(result)) ports.fatal(result.detail);
    return result;
  };
  return {
    append(...records) {
      const time = isoTime(ports.clock.nowUnixMs());
      let last: Result<Head> = ok(chain.head());
      const timed = records.map(({ kind, ...fields }) => ({ kind, time, ...fields }));
      last = guarded(chain.appendAll(timed));
      if (last.ok) remember(last.value);
      return last;
    },
    head: () => chain.head(),
    holds(witness) {
      const known = heads.get(witness.n);
      if (known !== undefined) return known === witness.hash;
      if (witness.n > chain.head().n) return false;
      return paths().some((path) => {
        const o = { from: FILE_START, sealedBelow: Infinity, watch: witness.n };
        const scan = scanLog(ports.disk, path, AUDIT_DOMAIN, o);
        return scan.ok && scan.value.watched === witness.hash;
      });
    },
    tail: (count, end = Infinity) => tailOf(ports.disk, paths(), count, end),
    *records() {
      for (const path of paths()) {
        for (const item of readChain(ports.disk, path, AUDIT_DOMAIN)) {
          const record = item.ok ? auditRecordOf(item.value.value) : null;
          if (record !== null) yield record;
        }
      }
    },
    verify: (against, onProgress) => verifyAll(ports, paths(), chain.head(), against, onProgress),
    rotateIfDue() {
      if (chain.file() === month()) return ok(null);
      // A clock that was set back does not open an older file again.
      if (month() < chain.file()) return ok(null);
      const rotated = guarded(chain.rotate(`${folder}/${month()}`, genesis(ports)));
      if (!rotated.ok) return rotated;
      chain = rotated.value;
      remember(chain.head());
      return ok(null);
    },
    close: () => chain.close(),
  };
}

function tailOf(
  disk: Disk,
  paths: readonly string[],
  count: number,
  end: number,
): Result<readonly string[]> {
  let lines: string[] = [];
  for (const path of paths.toReversed()) {
    const own: string[] = [];
    for (const item of readChain(disk, path, AUDIT_DOMAIN)) {
      if (!item.ok) return item;
      if (item.value.n > end) break;
      own.push(item.value.line);
      if (own.length > count * 2) own.splice(0, count);
    }
    lines = [...own, ...lines].slice(-count);
    if (lines.length >= count) break;
  }
  return ok(lines);
}

/** Hashes every line of every file, with pauses in which the sockets are served. */
async function verifyAll(
  { disk, clock }: AuditPorts,
  paths: readonly string[],
  head: Head,
  against: Head | null,
  onProgress: Progress,
): Promise<Result<Verified>> {
  const sizes = attempt(() => paths.map((path) => disk.stat(path).size));
  if (!sizes.ok) return sizes;
  const total = sizes.value.reduce((sum, size) => sum + size, 0);
  const wanted = new Map([head, ...(against === null ? [] : [against])].map((one) => [one.n, one]));
  const end = (finding: string): Result<Verified> => {
    const is_whole = finding === "";
    const said = is_whole ? "The log is whole" : finding.slice(0, 1_000);
    return ok({ is_whole, records, files: paths.length, head, finding: said });
  };
  let records = 0;
  let bytes = 0;
  let last: { file: string; n: number; hash: string } | null = null;
  for (const [i, path] of paths.entries()) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const opened = attempt(() => disk.open(path, "read"));
    if (!opened.ok) return opened;
    try {
      for (const item of scanFile(opened.value, AUDIT_DOMAIN, FILE_START, Infinity)) {
        if (item.is === "torn") return end(`${name}: torn tail: the last line was never finished`);
        if (item.is === "damage") {
          const { atRecord, detail, name: what } = item.damage;
          const kind = kindOf(opened.value, item.damage, endBefore(disk, paths[i + 1], head));
          return end(`${name}, record ${atRecord}: ${kind}: ${detail} (${what})`);
        }
        const { n, hash, value } = item.record;
        if (value !== null && !follows(value, last)) {
          return end(`${name}: missing file: it does not follow ${last?.file ?? "nothing"}`);
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
  const [missing] = wanted.values();
  if (missing === undefined) return end("");
  const kind = missing.n > (last?.n ?? -1) ? "deletion at its end" : "fork";
  return end(`${kind}: the log does not hold the head ${missing.n}:${missing.hash}`);
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

/** The hash that the file before `path` must end in: what `path` follows, or the head. */
function endBefore(disk: Disk, path: string | undefined, head: Head): string | null {
  if (path === undefined) return head.hash;
  const first = readChain(disk, path, AUDIT_DOMAIN).next();
  const value = first.done !== true && first.value.ok ? first.value.value.value : null;
  const hash: unknown = Reflect.get(Object(Reflect.get(Object(value), "previous")), "hash");
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
