// Brings an index up to date with the session logs and notes.md, reading only what is new. The same
// steps build an index anew, so one and the other come out equal.
//
// 1. Rows and the place up to which a log was read are kept in one transaction.
// 2. A log that cannot be parsed, is damaged, or lacks the label it began with is skipped whole and
//    named; it is tried again when it has changed.
// 3. Each step is short; the caller may pause after any of them.
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readBytes, readWhole } from "../../shared/disk/durable.ts";
import { FILE_START, readChain } from "../../shared/chain/chain_reader.ts";
import { hashBytes } from "../../shared/chain/chain_record.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { classWithin, type DataClass, type Label } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import {
  Baseline,
  parseSessionRecord,
  SESSION_LOG_DOMAIN,
} from "../../shared/session_log/records.ts";
import { parseCanonical } from "../../shared/wire/codec.ts";
import type { IndexDb, Progress, Row } from "./index_db.ts";
import { parseNotes, type PlacedNote } from "./notes.ts";
import { walk } from "./session_rows.ts";

export const NOTES_LOG = "notes.md";
const BATCH_RECORDS = 500;
const MAX_BASELINE_BYTES = 16_777_216;

/** What an index is made from. */
export type Sources = {
  readonly disk: Disk;
  /** The folder of all sessions. */
  readonly sessions: string;
  /** The path of notes.md. */
  readonly notes: string;
  readonly maxClass: DataClass;
};

export type Step = { readonly logs: number; readonly totalLogs: number };

/** Reads everything that is new, and forgets logs whose files are gone. */
export function* readAll(db: IndexDb, from: Sources): Generator<Step> {
  const logs = sessionsOf(from).flatMap((session) => logsOf(from, session));
  const known = new Set(logs.map(nameOf));
  for (const log of db.logs()) {
    if (log !== NOTES_LOG && !known.has(log)) db.inOneStep(() => db.drop(log));
  }
  readNotes(db, from);
  let done = 0;
  for (const log of logs) {
    for (const _ of readLog(db, from, log)) yield { logs: done, totalLogs: logs.length };
    done++;
    if (done % 20 === 0) yield { logs: done, totalLogs: logs.length };
  }
}

/** Reads what is new in the logs of one session. */
export function* readSession(db: IndexDb, from: Sources, session: SessionId): Generator<Step> {
  const logs = logsOf(from, session);
  for (const log of logs) {
    for (const _ of readLog(db, from, log)) yield { logs: 0, totalLogs: logs.length };
  }
}

type Log = { readonly session: SessionId; readonly epoch: number };

function nameOf(log: Log): string {
  return `${log.session}/${log.epoch}`;
}

function sessionsOf(from: Sources): SessionId[] {
  const listed = attempt(() => from.disk.list(from.sessions));
  const names = listed.ok ? listed.value.filter((entry) => entry.kind === "folder") : [];
  return names.flatMap(({ name }) => {
    const session = SessionId.safeParse(name);
    return session.success ? [session.data] : [];
  });
}

function logsOf(from: Sources, session: SessionId): Log[] {
  const listed = attempt(() => from.disk.list(`${from.sessions}/${session}`));
  const names = listed.ok ? listed.value.map((entry) => entry.name) : [];
  return names.flatMap((name) => {
    const epoch = /^(0|[1-9]\d{0,8})\.jsonl$/.exec(name)?.[1];
    return epoch === undefined ? [] : [{ session, epoch: Number(epoch) }];
  }).sort((a, b) => a.epoch - b.epoch);
}

function* readLog(db: IndexDb, from: Sources, log: Log): Generator<void> {
  const name = nameOf(log);
  const path = `${from.sessions}/${log.session}/${log.epoch}.jsonl`;
  const size = attempt(() => from.disk.stat(path).size);
  if (!size.ok) return;
  const before = db.progress(name);
  if (before?.offset === size.value) return;
  const isFresh = before === undefined || before.problem !== "" || size.value < before.offset;
  if (isFresh && before !== undefined) db.inOneStep(() => db.drop(name));
  const start = isFresh ? beginning(from, log) : ok(before);
  const end = start.ok ? yield* readRecords(db, from, { name, path, log }, start.value) : start;
  if (end.ok) return;
  db.inOneStep(() => {
    db.drop(name);
    db.setProgress(name, {
      offset: size.value,
      next: 0,
      prev: "",
      class: "secret",
      untrusted: 1,
      problem: `${end.code}: ${end.detail}`.slice(0, 500),
    });
  });
}

function beginning(from: Sources, log: Log): Result<Progress> {
  const path = `${from.sessions}/${log.session}/${log.epoch}.baseline.json`;
  const bytes = readWhole(from.disk, path, MAX_BASELINE_BYTES);
  const value = bytes.ok ? parseCanonical(bytes.value) : bytes;
  if (!value.ok) return value;
  const parsed = Baseline.safeParse(value.value);
  if (!parsed.success || parsed.data.session !== log.session || parsed.data.epoch !== log.epoch) {
    return err("record-invalid", "The baseline beside it is not this log's");
  }
  const { label } = parsed.data;
  return ok({ offset: 0, next: 0, prev: "", ...storedLabel(label), problem: "" });
}

function storedLabel(label: Label): Pick<Progress, "class" | "untrusted"> {
  return { class: label.class, untrusted: label.untrusted ? 1 : 0 };
}

function* readRecords(
  db: IndexDb,
  from: Sources,
  at: { readonly name: string; readonly path: string; readonly log: Log },
  start: Progress,
): Generator<void, Result<void>> {
  let label: Label = { class: start.class, untrusted: start.untrusted === 1 };
  let rows: Row[] = [];
  let unkept = 0;
  let place = start;
  const keep = () => {
    db.inOneStep(() => {
      db.add(at.name, rows);
      db.setProgress(at.name, place);
    });
    rows = [];
    unkept = 0;
  };
  const position = start.offset === 0
    ? FILE_START
    : { offset: start.offset, next: { n: start.next, prev: start.prev } };
  for (const stored of readChain(from.disk, at.path, SESSION_LOG_DOMAIN, position)) {
    if (!stored.ok) return stored;
    const { n, hash, end, value } = stored.value;
    const record = parseSessionRecord(value);
    if (!record.ok) return record;
    if (n === 0 && !opens(record.value, at.log)) {
      return err("record-invalid", "It does not begin as this session's log");
    }
    const walked = walk(label, record.value, n, from.maxClass);
    label = walked.label;
    rows.push(...walked.rows);
    place = { offset: end, next: n + 1, prev: hash, ...storedLabel(label), problem: "" };
    if (++unkept < BATCH_RECORDS) continue;
    keep();
    yield;
  }
  if (unkept > 0) keep();
  return ok(undefined);
}

function opens(record: { readonly kind: string; readonly log?: string }, log: Log): boolean {
  return record.kind === "open" && record.log === `session ${log.session} epoch ${log.epoch}`;
}

/** Reads what is new in notes.md; when what was read before has changed, all of it again. */
export function readNotes(db: IndexDb, from: Sources): void {
  const size = attempt(() => from.disk.stat(from.notes).size);
  const before = db.progress(NOTES_LOG);
  if (!size.ok || size.value === 0) {
    if (before !== undefined) db.inOneStep(() => db.drop(NOTES_LOG));
    return;
  }
  if (before?.offset === size.value && isSame(from, before)) return;
  const start = before !== undefined && isFollowed(from, before) ? before : undefined;
  const base = start?.offset ?? 0;
  const bytes = bytesBetween(from, base, size.value);
  if (!bytes.ok) return;
  const parsed = parseNotes(bytes.value, start?.next ?? 0);
  db.inOneStep(() => {
    if (start === undefined) db.drop(NOTES_LOG);
    db.add(NOTES_LOG, parsed.notes.flatMap((placed) => noteRow(placed, from.maxClass)));
    const left = parsed.unlabelled > 0
      ? "It has lines that belong to no note and are not shown"
      : "";
    db.setProgress(NOTES_LOG, {
      offset: size.value,
      next: parsed.heads,
      prev: tailMark(bytes.value, base, parsed.notes.at(-1)),
      ...storedLabel({ class: "public", untrusted: false }),
      problem: left === "" ? start?.problem ?? "" : left,
    });
  });
}

/** Where the last note began and what it was, so that a later change of the file is noticed. */
function tailMark(bytes: Uint8Array, base: number, last: PlacedNote | undefined): string {
  const start = last?.start ?? 0;
  return `${base + start}:${hashBytes(bytes.subarray(start))}`;
}

function isSame(from: Sources, before: Progress): boolean {
  const [start = "", digest] = before.prev.split(":");
  const bytes = bytesBetween(from, Number(start), before.offset);
  return bytes.ok && hashBytes(bytes.value) === digest;
}

/** Whether what was read stands as it was and a new note begins right after it. */
function isFollowed(from: Sources, before: Progress): boolean {
  const next = bytesBetween(from, before.offset, before.offset + 2);
  return next.ok && next.value[0] === 0xc2 && next.value[1] === 0xa7 && isSame(from, before);
}

function bytesBetween(from: Sources, start: number, end: number): Result<Uint8Array> {
  return attempt(() => {
    const file = from.disk.open(from.notes, "read");
    try {
      file.seek(start);
      return readBytes(file, Math.max(0, end - start));
    } finally {
      file.close();
    }
  });
}

function noteRow({ note, number }: PlacedNote, maxClass: DataClass): Row[] {
  if (!classWithin(note.label.class, maxClass)) return [];
  const isIdentity = note.kind !== "note";
  const who = note.from === null ? "noted" : `${note.kind} from ${note.from}.md`;
  return [{
    record: number,
    part: 0,
    timeUnixMs: note.timeUnixMs,
    who,
    tag: isIdentity && !note.label.untrusted ? "identity" : "experience",
    label: note.label,
    text: note.text,
  }];
}
