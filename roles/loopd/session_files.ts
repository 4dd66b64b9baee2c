// The files of a session: `sessions/<id>/<epoch>.baseline.json`, `<epoch>.jsonl` (chained, with its
// head beside it) and `artifacts/`, exact bytes named by their SHA-256.
//
// 1. The baseline is written once, after its empty log and before the first message, and never
//    changes; so a baseline without a log is a log that somebody took away.
// 2. A session is opened by its newest epoch alone, so its past costs nothing.
// 3. Damage is `session-damaged`; a session is never continued with fewer records in silence.
import { openChain, type OpenFinding } from "../../shared/chain/chained_log.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import { verifyChain } from "../../shared/chain/chain_verify.ts";
import type { Chain } from "../../shared/chain/chain_writer.ts";
import { type HeadFile, nameOf, readHead } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import {
  attempt,
  createIdempotent,
  makeFolders,
  readWhole,
  removeFile,
  replaceFile,
} from "../../shared/disk/durable.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { equalLabel, join, type Label } from "../../shared/labels/label.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import {
  type Baseline,
  parseBaseline,
  parseSessionRecord,
  SESSION_LOG_DOMAIN,
  type SessionRecord,
  type StoredBaseline,
} from "../../shared/session_log/records.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { encodeCanonical, toBase64 } from "../../shared/wire/codec.ts";
import { MAX_OUTPUT_BYTES } from "../../shared/wire/limits.ts";
import { durable, type Ports } from "./ports.ts";

const MAX_BASELINE_BYTES = 4_194_304;

export type SessionFile = ReturnType<typeof sessionFile>;

/** A record as it is appended, which gives it its time. */
type Fresh<R> = R extends SessionRecord ? Omit<R, "time_unix_ms"> : never;

/** Where the files of an epoch lie. */
export function epochFiles(folder: string, epoch: number) {
  const stem = `${folder}/${epoch}`;
  return { baseline: `${stem}.baseline.json`, log: `${stem}.jsonl`, head: `${stem}.head.json` };
}

/** The newest epoch of a session's folder; fails with `not-found` when there is none. */
export function newestEpoch(disk: Disk, folder: string): Result<number> {
  const entries = attempt(() => disk.list(folder));
  if (!entries.ok) return entries.code === "file-missing" ? err("not-found", folder) : entries;
  const epochs = entries.value.flatMap((entry) => {
    const found = /^(0|[1-9]\d{0,5})\.baseline\.json$/.exec(entry.name);
    return found === null ? [] : [Number(found[1])];
  });
  return epochs.length === 0
    ? err("not-found", `No session in ${folder}`)
    : ok(Math.max(...epochs));
}

/** Makes a session by writing its baseline, which is what makes it exist, and opens it. */
export function createSession(
  ports: Ports,
  folder: string,
  baseline: Baseline,
): Result<SessionFile> {
  const files = epochFiles(folder, baseline.epoch);
  const made = makeFolders(ports.disk, folder);
  const cleared = made.ok ? clearUnborn(ports.disk, files) : made;
  if (!cleared.ok) return durable(ports, cleared);
  const bytes = encodeCanonical(baseline);
  const opened = openLog(ports, folder, { baseline, sha256: sha256Hex(bytes) });
  if (!opened.ok) return opened;
  const written = createIdempotent(ports.disk, files.baseline, bytes);
  if (written.ok) return opened;
  opened.value.close();
  return durable(ports, written);
}

/** Removes the log of a session that a crash kept from its baseline: its first record names another. */
function clearUnborn(disk: Disk, files: ReturnType<typeof epochFiles>): Result<void> {
  const head = readHead(disk, files.head);
  if (!head.ok) return damaged(head);
  const records = readRecords(disk, files.log);
  if (!records.ok) return records.code === "file-missing" ? ok(undefined) : records;
  if (records.value.length > 1 || (head.value?.n ?? 0) > 0) {
    return err("session-damaged", `${files.baseline} is gone, and its log is not`);
  }
  const unheaded = removeFile(disk, files.head);
  return unheaded.ok ? removeFile(disk, files.log) : unheaded;
}

/** Opens the newest epoch. Fails with `not-found`, `session-damaged` or a code of the disk. */
export function openSession(ports: Ports, folder: string): Result<SessionFile> {
  const epoch = newestEpoch(ports.disk, folder);
  const stored = epoch.ok ? readStored(ports.disk, folder, epoch.value) : epoch;
  return stored.ok ? openLog(ports, folder, stored.value) : stored;
}

function openLog(ports: Ports, folder: string, stored: StoredBaseline): Result<SessionFile> {
  const { session, epoch } = stored.baseline;
  const files = epochFiles(folder, epoch);
  const nowUnixMs = ports.clock.nowUnixMs();
  const opened = openChain({
    disk: ports.disk,
    path: files.log,
    headPath: files.head,
    domain: SESSION_LOG_DOMAIN,
    check: "tail",
    genesis: {
      kind: "open",
      time_unix_ms: nowUnixMs,
      log: `session ${session} epoch ${epoch}`,
      role: "loopd",
      protocol: 1,
      nonce: toBase64(ports.random.bytes(16)),
      baseline: stored.sha256,
    },
    repair: (finding) => ({
      kind: "notice",
      time_unix_ms: nowUnixMs,
      turn: null,
      code: "session-repaired",
      text: repairText(finding),
    }),
  });
  if (!opened.ok) return durable(ports, damaged(opened));
  const { chain, finding } = opened.value;
  const records = readEpoch(ports.disk, files.log, stored);
  if (!records.ok) {
    chain.close();
    return records;
  }
  const repair = finding.cutBytes > 0 ? repairText(finding) : null;
  return ok(sessionFile(ports, folder, stored.baseline, records.value, chain, repair));
}

function repairText(finding: OpenFinding): string {
  const cut = finding.cutBytes === 0
    ? ""
    : `; ${finding.cutBytes} unfinished bytes (SHA-256 ${finding.cutSha256}) were cut`;
  return `${finding.extraRecords} records beyond the acknowledged end were taken over${cut}`;
}

function damaged(failure: Err): Err {
  return ["log-broken", "record-invalid", "file-too-large"].includes(failure.code)
    ? err("session-damaged", failure.detail)
    : failure;
}

/** What stands beside an epoch's log: how it began, and what was acknowledged last. */
export type Stored = StoredBaseline & { readonly head: HeadFile };

/** Fails with `session-damaged` when there is no baseline of this very epoch, or no head. */
export function readStored(disk: Disk, folder: string, epoch: number): Result<Stored> {
  const files = epochFiles(folder, epoch);
  const head = readHead(disk, files.head);
  if (!head.ok) return damaged(head);
  if (head.value === null) return err("session-damaged", `${files.head} is gone`);
  const bytes = readWhole(disk, files.baseline, MAX_BASELINE_BYTES);
  const stored = bytes.ok ? parseBaseline(bytes.value, nameOf(folder), epoch) : bytes;
  return stored.ok ? ok({ ...stored.value, head: head.value }) : damaged(stored);
}

/** Every record of an epoch's log, which must have been begun with this baseline. */
export function readEpoch(
  disk: Disk,
  path: string,
  { sha256 }: StoredBaseline,
): Result<SessionRecord[]> {
  const records = readRecords(disk, path);
  if (!records.ok) return records;
  const [first] = records.value;
  return first?.kind === "open" && first.baseline === sha256
    ? records
    : err("session-damaged", `${path} was begun with another baseline than the one beside it`);
}

/** Every record of one epoch's log, each checked against the one before it and its schema. */
export function readRecords(disk: Disk, path: string): Result<SessionRecord[]> {
  const records: SessionRecord[] = [];
  for (const read of readChain(disk, path, SESSION_LOG_DOMAIN)) {
    if (!read.ok) return damaged(read);
    const record = parseSessionRecord(read.value.value);
    if (!record.ok) {
      return err("session-damaged", `${path} record ${read.value.n}: ${record.detail}`);
    }
    records.push(record.value);
  }
  return ok(records);
}

/** What the label records add to the baseline's label. */
export function labelOf(baseline: Baseline, records: readonly SessionRecord[]): Label {
  return records.reduce(
    (label, record) =>
      record.kind === "label"
        ? join(label, { class: record.class, untrusted: record.untrusted })
        : label,
    baseline.label,
  );
}

function sessionFile(
  ports: Ports,
  folder: string,
  baseline: Baseline,
  records: SessionRecord[],
  chain: Chain,
  repair: string | null,
) {
  const readable: readonly SessionRecord[] = records;
  let label = labelOf(baseline, records);
  const append = (fresh: Fresh<SessionRecord>): Result<null> => {
    const record: SessionRecord = { time_unix_ms: ports.clock.nowUnixMs(), ...fresh };
    const written = durable(ports, chain.append(record));
    if (!written.ok) return written;
    records.push(record);
    label = labelOf({ ...baseline, label }, [record]);
    return ok(null);
  };
  return {
    id: baseline.session,
    baseline,
    /** What was cut when the session was opened, or null. */
    repair,
    /** Every record of the epoch, in order; grows with `append`. */
    records: readable,
    /** The session's label by its own log. */
    label: () => label,
    /** Durable when it succeeds. */
    append,
    /** A label record when `more` adds something to the session's own label. */
    raise(more: Label, why: string): Result<null> {
      const joined = join(label, more);
      return equalLabel(joined, label) ? ok(null) : append({ kind: "label", ...joined, why });
    },
    /** Keeps exact bytes; returns their name. */
    archive: (bytes: Uint8Array) => durable(ports, archive(ports.disk, folder, bytes)),
    /** Bytes kept under `name`. Fails with `not-found`, or `session-damaged` when they changed. */
    artifact: (name: string) => readArtifact(ports.disk, folder, name),
    close: () => chain.close(),
  };
}

function archive(disk: Disk, folder: string, bytes: Uint8Array): Result<string> {
  const made = makeFolders(disk, `${folder}/artifacts`);
  if (!made.ok) return made;
  const name = sha256Hex(bytes);
  // Whatever lies there under this name is these bytes, or damaged.
  const written = replaceFile(disk, `${folder}/artifacts/${name}`, bytes);
  return written.ok ? ok(name) : written;
}

function readArtifact(disk: Disk, folder: string, name: string): Result<Uint8Array> {
  const bytes = readWhole(disk, `${folder}/artifacts/${name}`, MAX_OUTPUT_BYTES);
  if (!bytes.ok) return bytes.code === "file-missing" ? err("not-found", bytes.detail) : bytes;
  return sha256Hex(bytes.value) === name
    ? bytes
    : err("session-damaged", `The artifact ${name} holds other bytes`);
}

export type Verified = { readonly isWhole: boolean; readonly records: number; finding: string };

/** Re-derives every epoch of a session from its bytes. */
export function verifySession(disk: Disk, folder: string): Result<Verified> {
  const newest = newestEpoch(disk, folder);
  if (!newest.ok) return newest;
  let records = 0;
  const broken = (finding: string) => ok({ isWhole: false, records, finding });
  for (let epoch = 0; epoch <= newest.value; epoch++) {
    const { log } = epochFiles(folder, epoch);
    const stored = readStored(disk, folder, epoch);
    if (!stored.ok) return broken(stored.detail);
    const { head } = stored.value;
    const report = verifyChain(disk, log, SESSION_LOG_DOMAIN, { head, depth: "parsed" });
    if (!report.ok) return broken(report.detail);
    records += report.value.records;
    const { verdict } = report.value;
    if (verdict !== null) {
      const where = `epoch ${epoch}, record ${verdict.atRecord}`;
      return broken(`${where}: ${verdict.name}, ${verdict.detail}`);
    }
    const read = readEpoch(disk, log, stored.value);
    if (!read.ok) return broken(read.detail);
  }
  return ok({ isWhole: true, records, finding: "Every record follows the one before it" });
}

/** Ids of all sessions on the disk, in name order. */
export function sessionIds(disk: Disk, root: string): Result<SessionId[]> {
  const entries = attempt(() => disk.list(root));
  if (!entries.ok) return entries;
  return ok(entries.value.flatMap((entry) => {
    const id = SessionId.safeParse(entry.name);
    return entry.kind === "folder" && id.success ? [id.data] : [];
  }));
}
