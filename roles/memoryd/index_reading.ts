// Brings an index up to date with the session logs and notes.md, reading only what is new. The same
// steps build an index anew, so one and the other come out equal.
//
// 1. Rows and the place up to which a log was read are kept in one transaction.
// 2. A log that cannot be parsed, is damaged, or lacks the label it began with is skipped whole and
//    named; it is tried again when it has changed.
// 3. What was purged is not read, and forgotten where it was. When the list of purges cannot be read
//    nothing is, as an index without it would show what is hidden.
// 4. Each step is short; the caller may pause after any of them.
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readBytes, readWhole } from "../../shared/disk/durable.ts";
import { FILE_START, readChain } from "../../shared/chain/chain_reader.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { classWithin, type DataClass } from "../../shared/labels/label.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import {
  parseBaseline,
  parseSessionRecord,
  SESSION_LOG_DOMAIN,
} from "../../shared/session_log/records.ts";
import { decodeLossy } from "../../shared/wire/codec.ts";
import { type IndexDb, NOTES_LOG, type Progress, type Row } from "./index_db.ts";
import { NOTE_START, parseNotes, type PlacedNote } from "./notes.ts";
import { type Purged, readPurged } from "./purged.ts";
import { labelAfter, rowsOf } from "./session_rows.ts";

const BATCH_RECORDS = 500;
const MAX_BASELINE_BYTES = 4_194_304;

/** What an index is made from. */
export type Sources = {
  readonly disk: Disk;
  /** The absolute home folder. */
  readonly home: string;
  readonly maxClass: DataClass;
};

export type Step = { readonly logs: number; readonly total_logs: number };

/** One epoch's log: its name in the index, and the session and epoch it is named for. */
type Log = { readonly name: string; readonly session: SessionId; readonly epoch: number };

/** Reads everything that is new, and forgets logs whose files are gone. */
export function* readAll(db: IndexDb, from: Sources): Generator<Step> {
  const { sessions } = purgesOf(from);
  const logs = namesIn(from, "").filter((name) => !sessions.has(name))
    .flatMap((name) => logsOf(from, name));
  const known = new Set([NOTES_LOG, ...logs.map((log) => log.name)]);
  for (const name of db.logs()) {
    if (!known.has(name)) hide(db, () => db.drop(name));
  }
  readNotes(db, from);
  for (const [done, log] of logs.entries()) {
    const step = { logs: done, total_logs: logs.length };
    for (const _ of readLog(db, from, log)) yield step;
    if (done % 20 === 19) yield { ...step, logs: done + 1 };
  }
}

/** Reads what is new in the logs of one session. */
export function* readSession(db: IndexDb, from: Sources, session: SessionId): Generator<Step> {
  const isPurged = purgesOf(from).sessions.has(session);
  const logs = logsOf(from, session);
  for (const log of logs) {
    if (isPurged) hide(db, () => db.drop(log.name));
    else for (const _ of readLog(db, from, log)) yield { logs: 0, total_logs: logs.length };
  }
}

function purgesOf(from: Sources): Purged {
  const purged = readPurged(from.disk, listOf(from));
  if (!purged.ok) throw new Error(purged.detail);
  return purged.value;
}

/** Whether the index knows every purge; false also when the list cannot be read. */
export function knowsPurges(db: IndexDb, from: Sources): boolean {
  const purged = readPurged(from.disk, listOf(from));
  const known = Number(notesSeen(db.progress(NOTES_LOG) ?? NOTHING).purges);
  return purged.ok && purged.value.purges <= known;
}

const listOf = (from: Sources) => `${from.home}/memory/purged.jsonl`;
/** The path of what is named in the folder of all sessions. */
const sessionPath = (from: Sources, name: string) => `${from.home}/sessions/${name}`;
const notesOf = (from: Sources) => `${from.home}/memory/notes.md`;

function namesIn(from: Sources, folder: string): string[] {
  const listed = attempt(() => from.disk.list(sessionPath(from, folder)));
  return listed.ok ? listed.value.map((entry) => entry.name) : [];
}

function logsOf(from: Sources, name: string): Log[] {
  const session = SessionId.safeParse(name);
  if (!session.success) return [];
  return namesIn(from, session.data).flatMap((file) => {
    const epoch = /^(0|[1-9]\d{0,8})\.jsonl$/.exec(file)?.[1];
    if (epoch === undefined) return [];
    return [{ name: `${name}/${epoch}`, session: session.data, epoch: Number(epoch) }];
  }).sort((a, b) => a.epoch - b.epoch);
}

function* readLog(db: IndexDb, from: Sources, log: Log): Generator<void> {
  const size = attempt(() => from.disk.stat(sessionPath(from, `${log.name}.jsonl`)).size);
  const before = db.progress(log.name);
  if (!size.ok || before?.offset === size.value) return;
  const goesOn = before !== undefined && before.problem === "" && before.offset < size.value;
  if (!goesOn) db.inOneStep(() => db.drop(log.name));
  const start = goesOn ? ok({ place: before, baseline: null }) : beginning(from, log);
  const failure = start.ok ? yield* readRecords(db, from, log, start.value) : start;
  if (failure === null) return;
  const problem = `${failure.code}: ${failure.detail}`.slice(0, 500);
  db.inOneStep(() => {
    db.drop(log.name);
    db.setProgress(log.name, { ...NOTHING, offset: size.value, problem });
  });
}

/** Where to read on; a log that is read from its beginning names the baseline beside it there. */
type Start = { place: Progress; readonly baseline: string | null };

const NOTHING: Progress = {
  offset: 0,
  next: 0,
  prev: "",
  class: "public",
  untrusted: false,
  problem: "",
};

function beginning(from: Sources, log: Log): Result<Start> {
  const path = sessionPath(from, `${log.name}.baseline.json`);
  const bytes = readWhole(from.disk, path, MAX_BASELINE_BYTES);
  const stored = bytes.ok ? parseBaseline(bytes.value, log.session, log.epoch) : bytes;
  if (!stored.ok) return stored;
  const { baseline, sha256 } = stored.value;
  return ok({ place: { ...NOTHING, ...baseline.label }, baseline: sha256 });
}

/** Reads on from `place`; what stopped it before the end, or null. */
function* readRecords(
  db: IndexDb,
  from: Sources,
  log: Log,
  { place, baseline }: Start,
): Generator<void, Err | null> {
  const position = place.offset === 0
    ? FILE_START
    : { offset: place.offset, next: { n: place.next, prev: place.prev } };
  const path = sessionPath(from, `${log.name}.jsonl`);
  let rows: Row[] = [];
  let unkept = 0;
  const keep = () => {
    db.inOneStep(() => {
      db.add(log.name, rows.filter((row) => isFindable(row, from)));
      db.setProgress(log.name, place);
    });
    rows = [];
    unkept = 0;
  };
  for (const stored of readChain(from.disk, path, SESSION_LOG_DOMAIN, position)) {
    if (!stored.ok) return stored;
    const { n, hash, end, value } = stored.value;
    const record = parseSessionRecord(value);
    if (!record.ok) return record;
    const opens = record.value.kind === "open" && record.value.baseline === baseline;
    if (opens !== (n === 0)) {
      return err("record-invalid", "It does not begin as this session's log");
    }
    rows.push(...rowsOf(log.name, n, place, record.value));
    place = { ...place, ...labelAfter(place, record.value), offset: end, next: n + 1, prev: hash };
    if (++unkept < BATCH_RECORDS) continue;
    keep();
    yield;
  }
  if (unkept > 0) keep();
  return null;
}

function isFindable(row: Row, from: Sources): boolean {
  return row.text.trim() !== "" && classWithin(row.class, from.maxClass);
}

/** Reads what is new in notes.md; when what was read before has changed, all of it again. */
export function readNotes(db: IndexDb, from: Sources): void {
  const size = attempt(() => from.disk.stat(notesOf(from)).size);
  const length = size.ok ? size.value : 0;
  const before = db.progress(NOTES_LOG) ?? NOTHING;
  const purged = purgesOf(from);
  const purges = String(purged.purges);
  const knowsPurges = before.prev === "" || notesSeen(before).purges === purges;
  const isSame = knowsPurges && wasReadAs(from, before);
  if (isSame && before.offset === length) return;
  const next = decodeLossy(bytesBetween(from, before.offset, before.offset + 3));
  const goesOn = isSame && next === NOTE_START;
  const start = goesOn ? before : NOTHING;
  const bytes = bytesBetween(from, start.offset, length);
  const parsed = parseNotes(bytes, start.next);
  // Where the last note begins and what it is: a later change of the file shows there.
  const last = parsed.notes.at(-1)?.start ?? 0;
  const step = () => {
    if (!goesOn) db.drop(NOTES_LOG);
    const rows = parsed.notes.filter(({ note }) => !purged.hidesNote(note))
      .map(noteRow);
    db.add(NOTES_LOG, rows.filter((row) => isFindable(row, from)));
    db.setProgress(NOTES_LOG, {
      ...NOTHING,
      offset: length,
      next: parsed.heads,
      prev: `${start.offset + last}:${sha256Hex(bytes.subarray(last))}:${purges}`,
      problem: parsed.unlabelled > 0 ? "It has lines that belong to no note" : start.problem,
    });
  };
  if (knowsPurges) db.inOneStep(step);
  else hide(db, step);
}

/** Takes out what was purged. When that fails, if only for want of room, the index is of no use. */
function hide(db: IndexDb, change: () => void): void {
  try {
    db.inOneStep(change);
  } catch (cause) {
    throw new Error("What was purged could not be taken out", { cause });
  }
}

/** What was seen of notes.md: where its last note begins, that note's digest, and how many purges. */
function notesSeen({ prev }: Progress) {
  const [start = "", digest, purges] = prev.split(":");
  return { start, digest, purges };
}

function wasReadAs(from: Sources, before: Progress): boolean {
  const { start, digest } = notesSeen(before);
  return sha256Hex(bytesBetween(from, Number(start), before.offset)) === digest;
}

/** Part of notes.md; empty when it cannot be read. */
function bytesBetween(from: Sources, start: number, end: number): Uint8Array {
  const bytes = attempt(() => {
    const file = from.disk.open(notesOf(from), "read");
    try {
      file.seek(start);
      return readBytes(file, Math.max(0, end - start));
    } finally {
      file.close();
    }
  });
  return bytes.ok ? bytes.value : new Uint8Array();
}

function noteRow({ note, number }: PlacedNote): Row {
  return {
    log: NOTES_LOG,
    record: number,
    part: 0,
    time_unix_ms: note.timeUnixMs,
    who: note.from === null ? "noted" : `${note.kind} from ${note.from}.md`,
    tag: note.kind === "note" || note.label.untrusted ? "experience" : "identity",
    class: note.label.class,
    untrusted: note.label.untrusted,
    text: note.text,
  };
}
