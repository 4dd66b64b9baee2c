// The audit log of the house: chained, one file a month, one writer.
//
// 1. A record is durable, and its head too, before anything it speaks of goes on.
// 2. A log that does not bear out its head is never continued: `audit-broken`.
// 3. Callers keep the heads they were shown; one that this log does not hold is an alarm.
import type { Clock } from "../../shared/clock/clock.ts";
import { isoTime } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import { FILE_START, readChain } from "../../shared/chain/chain_reader.ts";
import type { Head } from "../../shared/chain/chain_record.ts";
import { scanLog } from "../../shared/chain/chain_verify.ts";
import type { Chain, Genesis } from "../../shared/chain/chain_writer.ts";
import { openChain } from "../../shared/chain/chained_log.ts";
import { readHead } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, mustEnd } from "../../shared/disk/durable.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { WIRE_VERSION } from "../../shared/wire/limits.ts";
import {
  AUDIT_DOMAIN,
  type AuditRecord,
  auditRecordOf,
  declaredIn,
  type NewAuditRecord,
} from "./audit_records.ts";
import { beginAfter, keptRecords, lastWhole, putAside } from "./audit_repair.ts";
import { type Broken, firstOf, type Progress, type Verified, verifyAll } from "./audit_verify.ts";

const REMEMBERED_HEADS = 20_000;

export type AuditPorts = {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends the process: nobody knows what is on the disk. Does not return in a running role. */
  readonly fatal: (detail: string) => void;
};

export interface Audit {
  /** Appends durably, all or (but for a crash) none. A failure of the disk's sync ends the process. */
  append(...records: readonly NewAuditRecord[]): Result<Head>;
  head(): Head;
  /**
   * The start of the month of the file before the newest, when this was opened; 0 when there is none. By
   * the log's own word, whatever the clock says, what is older lies a month back at the least.
   */
  readonly formerUnixMs: number;
  /** The time of the newest record when this was opened, by its own word. */
  readonly lastUnixMs: number;
  /** Whether this log holds that record. */
  holds(witness: Head): boolean;
  /** The last `count` lines as stored up to record `end`, oldest first. */
  tail(count: number, end?: number): Result<readonly string[]>;
  /** Every record of every file, oldest first, until one is damaged. */
  records(): Generator<AuditRecord>;
  verify(against: Head | null, onProgress: Progress): Promise<Result<Verified>>;
  /** Puts what `verify` found broken aside, as the owner declares it lost, and goes on. */
  repair(broken: Broken, finding: string): Result<Head>;
  /**
   * Goes on in the file of the present month when it is another; call when nothing runs, and not while
   * the owner has stopped: at a start the last stop or resume is looked for in the newest file alone.
   */
  rotateIfDue(): Result<unknown>;
  close(): void;
}

/**
 * Opens the log in `folder` and passes what its newest file holds to `onRecord`, oldest first, before
 * that what older ones say that may speak of today.
 */
export function openAudit(
  ports: AuditPorts,
  folder: string,
  onRecord: (record: AuditRecord) => void,
): Result<Audit> {
  const headPath = `${folder}/head.json`;
  const headFile = readHead(ports.disk, headPath);
  const files = auditFiles(ports.disk, folder);
  if (!files.ok) return files;
  if (!headFile.ok) return broken(headFile);
  const path = `${folder}/${headFile.value?.file ?? files.value.at(-1) ?? monthOf(ports)}`;
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
  // What was put aside to begin this file, of whatever month, or from this one.
  const begun = firstOf(ports.disk, path);
  const aside = declaredIn(begun?.value)?.file ?? opened.value.chain.file();
  for (const record of keptRecords(ports.disk, folder, aside)) {
    // What was damaged may restrict; an answer counts only where the chain bears it out.
    if (record.kind !== "approval") onRecord(record);
  }
  const { hash } = formerOf(begun?.value);
  // The head that this file goes on from was acknowledged too.
  if (begun !== null && typeof hash === "string") heads.set(begun.n - 1, hash);
  for (const name of filesOfToday(ports, folder, files.value, begun?.value)) {
    for (const record of recordsIn(ports.disk, `${folder}/${name}`)) onRecord(record);
  }
  let lastUnixMs = 0;
  for (const item of readChain(ports.disk, path, AUDIT_DOMAIN, FILE_START)) {
    if (!item.ok) {
      opened.value.chain.close();
      return broken(item);
    }
    remember(heads, item.value);
    lastUnixMs = Date.parse(Object(item.value.value).time);
    const record = auditRecordOf(item.value.value);
    if (record !== null) onRecord(record);
  }
  const month = files.value.filter((name) => name < opened.value.chain.file()).at(-1);
  const formerUnixMs = month === undefined ? 0 : Date.parse(month.slice(0, 7));
  return ok({ ...auditOf(ports, folder, opened.value.chain, heads), formerUnixMs, lastUnixMs });
}

/** What the first record of a file says of the file before it. */
function formerOf(first: unknown): { readonly file?: unknown; readonly hash?: unknown } {
  return Object(Object(first).previous);
}

/**
 * The older files that may speak of today: those before one that began today, or later than that by a
 * clock that ran ahead. `first` is the first record of the newest.
 */
function filesOfToday(
  { disk, clock }: AuditPorts,
  folder: string,
  files: readonly string[],
  first: unknown,
): readonly string[] {
  const today = isoTime(clock.nowUnixMs()).slice(0, 10);
  const found: string[] = [];
  for (let at = first; String(Object(at).time).slice(0, 10) >= today;) {
    const name = files.find((one) => one === formerOf(at).file);
    if (name === undefined || found.includes(name)) break;
    found.unshift(name);
    at = firstOf(disk, `${folder}/${name}`)?.value;
  }
  return found;
}

/** As `verify`, for a log that could not be opened for the reason `failure`. */
export async function verifyClosed(
  ports: AuditPorts,
  folder: string,
  failure: Err,
  against: Head | null,
  onProgress: Progress,
): Promise<Result<Verified>> {
  const files = auditFiles(ports.disk, folder);
  const stored = readHead(ports.disk, `${folder}/head.json`);
  if (!files.ok) return files;
  const head = stored.ok && stored.value !== null
    ? { n: stored.value.n, hash: stored.value.hash }
    : null;
  const paths = files.value.map((name) => `${folder}/${name}`);
  const verified = await verifyAll(ports, paths, head, against, onProgress);
  if (!verified.ok || !verified.value.is_whole) return verified;
  return ok({ ...verified.value, is_whole: false, finding: failure.detail.slice(0, 1_000) });
}

/** As `repair`, for the newest file of a log that could not be opened. */
export function repairClosed(ports: AuditPorts, folder: string, failure: Err): Result<Head> {
  const files = auditFiles(ports.disk, folder);
  if (!files.ok) return files;
  const month = monthOf(ports);
  const stored = readHead(ports.disk, `${folder}/head.json`);
  const file = (stored.ok ? stored.value?.file : null) ?? files.value.at(-1) ?? month;
  const whole = lastWhole(ports.disk, `${folder}/${file}`);
  const broken = { file, from: (whole?.n ?? -1) + 1, to: -1 };
  const next = month > file ? month : file;
  const begun = beginAfter(ports.disk, folder, next, genesis(ports), broken, failure.detail);
  if (!begun.ok) return begun;
  const head = begun.value.head();
  begun.value.close();
  return ok(head);
}

function monthOf({ clock }: AuditPorts): string {
  return `${isoTime(clock.nowUnixMs()).slice(0, 7)}.jsonl`;
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

function remember(heads: Map<number, string>, { n, hash }: Head): void {
  heads.set(n, hash);
  const oldest = heads.keys().next();
  if (heads.size > REMEMBERED_HEADS && oldest.done !== true) heads.delete(oldest.value);
}

function auditOf(
  ports: AuditPorts,
  folder: string,
  first: Chain,
  heads: Map<number, string>,
): Omit<Audit, "formerUnixMs" | "lastUnixMs"> {
  let chain = first;
  const paths = () => {
    const names = auditFiles(ports.disk, folder);
    return names.ok ? names.value.map((name) => `${folder}/${name}`) : [];
  };
  const guarded = <T>(result: Result<T>): Result<T> => {
    if (!result.ok && mustEnd(result)) ports.fatal(result.detail);
    return result;
  };
  const goOnIn = (next: Result<Chain>): Result<Head> => {
    if (!next.ok) return next;
    chain = next.value;
    remember(heads, chain.head());
    return ok(chain.head());
  };
  return {
    append(...records) {
      const time = isoTime(ports.clock.nowUnixMs());
      const timed = records.map(({ kind, ...fields }) => ({ kind, time, ...fields }));
      const last = guarded(chain.appendAll(timed));
      if (last.ok) remember(heads, last.value);
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
    records: () => allRecords(ports.disk, folder, paths()),
    verify: (against, onProgress) => verifyAll(ports, paths(), chain.head(), against, onProgress),
    repair(broken, finding) {
      const { disk } = ports;
      if (broken.file === chain.file()) {
        chain.close();
        const begun = beginAfter(disk, folder, broken.file, genesis(ports), broken, finding);
        // The old file is closed: without a new one nothing can be recorded any more.
        if (!begun.ok) ports.fatal(begun.detail);
        return goOnIn(begun);
      }
      const repaired = putAside(disk, folder, broken, finding);
      if (!repaired.ok) return repaired;
      const time = isoTime(ports.clock.nowUnixMs());
      return guarded(chain.append({ kind: "repair", time, repaired: repaired.value }));
    },
    rotateIfDue() {
      // A clock that was set back does not open an older file again.
      const month = monthOf(ports);
      if (month <= chain.file()) return ok(null);
      return goOnIn(guarded(chain.rotate(`${folder}/${month}`, genesis(ports))));
    },
    close: () => chain.close(),
  };
}

function* allRecords(disk: Disk, folder: string, paths: readonly string[]): Generator<AuditRecord> {
  yield* keptRecords(disk, folder, "");
  for (const path of paths) yield* recordsIn(disk, path);
}

function* recordsIn(disk: Disk, path: string): Generator<AuditRecord> {
  for (const item of readChain(disk, path, AUDIT_DOMAIN)) {
    const record = item.ok ? auditRecordOf(item.value.value) : null;
    if (record !== null) yield record;
  }
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
