// The memory files and everything that changes them. All calls are synchronous, so one change is
// over before the next begins.
//
// 1. Order of an edit: what leaves goes to notes.md, the file is replaced if it is still what the
//    edit was made for, the journal line is written. A crash in between loses nothing: it leaves a
//    difference to the journal, which the next start (or change) journals as found.
// 2. A change whose journal line cannot be written fails with `disk-failed`: the process must end.
// 3. Bytes that cannot be read as they should be are never overwritten.
import {
  attempt,
  createExclusive,
  createIdempotent,
  makeFolders,
  readWhole,
  replaceFileIf,
  returnAside,
} from "../../shared/disk/durable.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import type { Fields } from "../../shared/chain/chain_record.ts";
import type { CallId, SessionId } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { encodeCanonical, encodeUtf8 } from "../../shared/wire/codec.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { appendText } from "./append.ts";
import { type Block, renderBlock } from "./block.ts";
import { applyEdit, type Edit, type Edited } from "./edits.ts";
import { EDITABLE_FILES, entriesOf, IDENTITY_FILES, type IdentityFile, textOf } from "./entries.ts";
import { checkFiles } from "./file_check.ts";
import { readIdentity } from "./identity_files.ts";
import { type FilesState, type Journal, openJournal, type StorePlace } from "./journal.ts";
import { type Note, renderNote } from "./notes.ts";
import { allShown, type OwnerActs, ownerActs, type StoreHands } from "./owner_acts.ts";
import { type Purged, readPurged } from "./purged.ts";
import { countRecalls, logRecall, type RecallLine, type Recalls } from "./recall_log.ts";

const MAX_FILE_BYTES = 16_777_216;

type Judged = Edited & { readonly before: string };
type NewNote = Pick<Note, "kind" | "from" | "text">;

/** Where a change comes from. */
export type Origin = {
  readonly session: SessionId;
  readonly call: CallId;
  readonly label: Label;
};

export interface MemoryStore extends OwnerActs {
  /** The block of these files as they are now; `memory-unavailable` when one is not in order. */
  block(files: readonly IdentityFile[]): Result<Block>;
  /** The text of a file as it is now. */
  current(file: IdentityFile): Result<string>;
  /** What an edit would make of its file as it is. Fails as `edit` does. */
  judged(edit: Edit, origin: Origin): Result<Judged>;
  /** Makes an edit; the file's new text. Fails with the codes of `applyEdit` or `memory-changed`. */
  edit(edit: Edit, origin: Origin): Result<string>;
  /** Checks an edit against the files as they are and queues it for the owner's review. */
  stage(edit: Edit, origin: Origin): Result<unknown>;
  /** Appends a note, which the caller has checked. */
  note(text: string, origin: Origin): Result<void>;
  /** Appends one line to the log of recalls. */
  logRecall(line: RecallLine): Result<number>;
  /** Counts the log of recalls; `most` bounds the texts listed. */
  recalls(most: number): Result<Recalls>;
  purged(): Result<Purged>;
  /** Looks at every file for what is wrong. */
  check(): Err[];
  close(): void;
}

/**
 * Makes what is missing (`starter` becomes the first soul.md), opens the journal and journals what
 * changed without it. Nothing that exists is overwritten. Fails as the disk and the journal do.
 */
export function openStore(at: StorePlace, starter: string): Result<MemoryStore> {
  const made = makeMissing(at, starter);
  if (!made.ok) return made;
  const state = stateOf(at);
  if (!state.ok) return state;
  const journal = openJournal(at, state.value);
  if (!journal.ok) return journal;
  const purged = readPurged(at.disk, `${at.folder}/purged.jsonl`);
  const found = purged.ok ? journalFound(at, journal.value) : purged;
  if (found.ok) return ok(storeOf(at, journal.value));
  journal.value.close();
  return found;
}

function makeMissing(at: StorePlace, starter: string): Result<void> {
  for (const name of ["edits", "recalls", "staged"]) {
    const made = makeFolders(at.disk, `${at.folder}/${name}`);
    if (!made.ok) return made;
  }
  for (const name of [...IDENTITY_FILES, "notes"]) {
    const path = `${at.folder}/${name}.md`;
    const returned = returnAside(at.disk, path);
    if (!returned.ok) return returned;
    if (attempt(() => at.disk.lstat(path)).ok) continue;
    const made = createExclusive(at.disk, path, encodeUtf8(name === "soul" ? starter : ""));
    if (!made.ok) return made;
  }
  return ok(undefined);
}

/** Digest of a file; null when it cannot be read. */
function hashAt(disk: Disk, path: string): string | null {
  const bytes = readWhole(disk, path, MAX_FILE_BYTES);
  return bytes.ok ? sha256Hex(bytes.value) : null;
}

/** What the files hold now; a file that cannot be read at all counts as absent. */
function stateOf({ disk, folder }: StorePlace): Result<FilesState> {
  const [memory = null, user = null] = EDITABLE_FILES.map((file) =>
    hashAt(disk, `${folder}/${file}.md`)
  );
  const notes = attempt(() => disk.stat(`${folder}/notes.md`).size);
  if (!notes.ok && notes.code !== "file-missing") return notes;
  return ok({ memory, user, notes: notes.ok ? notes.value : 0 });
}

/** Journals every difference between the files and the journal's last line: whose it is, is unknown. */
function journalFound(at: StorePlace, journal: Journal): Result<void> {
  const now = stateOf(at);
  if (!now.ok) return now;
  const before = journal.state();
  const head = { kind: "found", time_unix_ms: at.clock.nowUnixMs() };
  for (const file of EDITABLE_FILES) {
    if (now.value[file] === before[file]) continue;
    const text = readIdentity(at.disk, at.folder, file);
    const line = { ...head, file, after: text.ok ? text.value : null };
    const said = journal.append(line, { [file]: now.value[file] });
    if (!said.ok) return said;
  }
  const { notes } = now.value;
  if (notes === before.notes) return ok(undefined);
  return journal.append({ ...head, file: "notes", bytes: notes - before.notes }, { notes });
}

/** Whether a session may put a text into memory: neither may have been purged. */
function mayWrite(purged: Result<Purged>, origin: Origin, text: string): Result<void> {
  if (!purged.ok || !purged.value.sessions.has(origin.session)) return allShown(purged, text);
  return err("memory-purged", "What this session brings in was purged by the owner");
}

function judge(
  before: Result<string>,
  purged: Result<Purged>,
  edit: Edit,
  origin: Origin,
): Result<Judged> {
  if (!before.ok) return before;
  const edited = applyEdit(edit, entriesOf(before.value));
  if (!edited.ok) return edited;
  const allowed = mayWrite(purged, origin, textOf(edited.value.entries));
  return allowed.ok ? ok({ ...edited.value, before: before.value }) : allowed;
}

function storeOf(at: StorePlace, journal: Journal): MemoryStore {
  const head = (origin: Origin) => ({ time_unix_ms: at.clock.nowUnixMs(), ...origin });
  const purged = () => readPurged(at.disk, `${at.folder}/purged.jsonl`);
  const current = (file: IdentityFile) => readIdentity(at.disk, at.folder, file);
  const judged = (edit: Edit, origin: Origin) => judge(current(edit.file), purged(), edit, origin);
  /** After a change, a journal that cannot follow leaves no choice but to end: the start mends it. */
  const journalled = (line: Fields, change: Partial<FilesState>): Result<void> => {
    const said = journal.append(line, change);
    if (said.ok) return said;
    return err("disk-failed", `A change was made but not journalled: ${said.detail}`);
  };
  const keep = (notes: readonly NewNote[], origin: Origin, line: Fields): Result<void> => {
    if (notes.length === 0) return ok(undefined);
    const found = journalFound(at, journal);
    if (!found.ok) return found;
    const { session, label } = origin;
    const timeUnixMs = at.clock.nowUnixMs();
    const text = notes.map((one) => renderNote({ timeUnixMs, session, label, ...one })).join("");
    const size = appendText(at.disk, `${at.folder}/notes.md`, text);
    return size.ok ? journalled({ ...line, ...head(origin) }, { notes: size.value }) : size;
  };
  const change: StoreHands["change"] = (file, before, after, line) => {
    const found = journalFound(at, journal);
    if (!found.ok) return found;
    const [old, fresh] = [before, after].map((text) => sha256Hex(encodeUtf8(text)));
    const path = `${at.folder}/${file}.md`;
    const isOld = (name: string) => hashAt(at.disk, name) === old;
    const replaced = replaceFileIf(at.disk, path, encodeUtf8(after), isOld);
    if (!replaced.ok) return replaced;
    if (replaced.value === "kept") {
      const detail = `${file}.md was changed in the middle of this edit; look at it again`;
      return err("memory-changed", detail);
    }
    const said = journalled({ ...line, file, before, after }, { [file]: fresh });
    return said.ok ? ok(after) : said;
  };
  const edit: StoreHands["edit"] = (wanted, origin, via) => {
    const edited = judged(wanted, origin);
    if (!edited.ok) return edited;
    const { action, file } = wanted;
    const { before, entries, leaving } = edited.value;
    const leave = { kind: "left", file, entries: leaving };
    const left = keep(leaving.map((one) => ({ ...one, from: file })), origin, leave);
    if (!left.ok) return left;
    return change(file, before, textOf(entries), { kind: "edit", ...head(origin), action, via });
  };
  const store: MemoryStore = {
    ...ownerActs(at, { change, edit, purged }),
    block: (files) => {
      const known = purged();
      return known.ok ? renderBlock(files, current, known.value) : known;
    },
    current,
    judged,
    edit: (wanted, origin) => edit(wanted, origin, "call"),
    stage: (wanted, origin) => {
      const edited = judged(wanted, origin);
      const path = `${at.folder}/staged/${origin.call}.json`;
      const bytes = encodeCanonical({ v: 1, ...head(origin), edit: wanted });
      return edited.ok ? createIdempotent(at.disk, path, bytes) : edited;
    },
    note: (text, origin) => {
      const allowed = mayWrite(purged(), origin, "");
      if (!allowed.ok) return allowed;
      return keep([{ kind: "note", from: null, text }], origin, { kind: "note", text });
    },
    logRecall: (line) => logRecall(at.disk, `${at.folder}/recalls`, line),
    recalls: (most) => countRecalls(at.disk, `${at.folder}/recalls`, most),
    purged,
    check: () => checkFiles(at, store),
    close: () => journal.close(),
  };
  return store;
}
