// What the owner may do to memory through bxctl: undo an edit, apply or drop a staged one, purge what
// a session brought in. Each change goes through the store's own journalled path.
import { z } from "zod";
import type { Fields } from "../../shared/chain/chain_record.ts";
import { attempt, isTemporaryName, readWhole, removeFile } from "../../shared/disk/durable.ts";
import { CallId, SessionId } from "../../shared/ids/ids.ts";
import { Label } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { parseCanonical } from "../../shared/wire/codec.ts";
import { Edit } from "./edits.ts";
import { EDITABLE_FILES, type EditableFile, entriesOf, textOf } from "./entries.ts";
import { allNotes, readIdentity } from "./identity_files.ts";
import { readJournal, type StorePlace } from "./journal.ts";
import type { Origin } from "./memory_store.ts";
import { appendPurge, digestOf, hiding, type Purged } from "./purged.ts";

/** An edit that waits for the owner. */
export const Staged = z.strictObject({
  v: z.literal(1),
  time_unix_ms: z.int().min(0),
  session: SessionId,
  call: CallId,
  label: Label,
  edit: Edit,
});
export type Staged = z.output<typeof Staged>;

/** What a purge of a session takes out of sight: entries of identity files, and notes. */
export type Purge = {
  readonly entries: readonly { readonly file: EditableFile; readonly text: string }[];
  readonly notes: readonly string[];
  /** Of the entries, wherever they are by now. */
  readonly digests: ReadonlySet<string>;
  isHidden(entry: string): boolean;
};

export type OwnerActs = ReturnType<typeof ownerActs>;

/** The store's ways to change a file, and what it knows of purges. */
export type StoreHands = {
  /** Replaces a file that holds `before`, and journals it; the new text. */
  change(file: EditableFile, before: string, after: string, line: Fields): Result<string>;
  edit(edit: Edit, origin: Origin, via: "call" | "review"): Result<string>;
  purged(): Result<Purged>;
};

const MAX_STAGED_BYTES = 1_048_576;

export function ownerActs(at: StorePlace, hands: StoreHands) {
  return {
    history: () => readJournal(at.disk, `${at.folder}/edits`),
    /**
     * Puts back the bytes that the latest edit of a file replaced; the file's text. Fails with
     * `memory-nothing-to-undo`, or `memory-changed` when the file is no longer what that edit made.
     */
    undo: (file: EditableFile) => undo(at, hands, file),
    staged: () => stagedEdits(at),
    /** Applies or drops a staged edit. Fails with `memory-not-staged` or as an edit does. */
    review: (call: string, decision: "apply" | "drop"): Result<void> => {
      const staged = stagedEdits(at);
      if (!staged.ok) return staged;
      const one = staged.value.find((waiting) => waiting.call === call);
      if (one === undefined) return err("memory-not-staged", `No edit ${call} waits for review`);
      const { edit, session, label } = one;
      const origin = { session, call: one.call, label };
      // A crash after the edit leaves it waiting; applied again it is refused as already made.
      const made = decision === "apply" ? hands.edit(edit, origin, "review") : ok("");
      return made.ok ? removeFile(at.disk, `${at.folder}/staged/${one.call}.json`) : made;
    },
    /** What a purge of the session would hide. */
    broughtBy: (session: SessionId) => brought(at, session),
    /** Hides it for good. */
    purge: (session: SessionId, why: string) => purge(at, hands, session, why),
  };
}

function undo(at: StorePlace, hands: StoreHands, file: EditableFile): Result<string> {
  const lines = readJournal(at.disk, `${at.folder}/edits`);
  if (!lines.ok) return lines;
  const last = lines.value.findLast((line) => line.file === file && line.before !== null);
  if (last === undefined || last.before === null || last.after === null) {
    return err("memory-nothing-to-undo", `The journal holds no edit of ${file}.md`);
  }
  const text = readIdentity(at.disk, at.folder, file);
  if (!text.ok) return text;
  if (text.value !== last.after) {
    return err("memory-changed", `${file}.md is no longer what its latest edit made of it`);
  }
  const shown = allShown(hands.purged(), last.before);
  if (!shown.ok) return shown;
  const line = { kind: "undo", time_unix_ms: at.clock.nowUnixMs(), undoes: last.n };
  return hands.change(file, last.after, last.before, line);
}

function stagedEdits(at: StorePlace): Result<Staged[]> {
  const names = attempt(() => at.disk.list(`${at.folder}/staged`));
  if (!names.ok) return names;
  const found: Staged[] = [];
  for (const { name } of names.value) {
    if (isTemporaryName(name)) continue;
    const bytes = readWhole(at.disk, `${at.folder}/staged/${name}`, MAX_STAGED_BYTES);
    const value = bytes.ok ? parseCanonical(bytes.value) : bytes;
    const parsed = Staged.safeParse(value.ok ? value.value : null);
    if (!parsed.success) return err("record-invalid", `staged/${name} is not a staged edit`);
    found.push(parsed.data);
  }
  return ok(found.sort((a, b) => a.time_unix_ms - b.time_unix_ms));
}

function purge(
  at: StorePlace,
  hands: StoreHands,
  session: SessionId,
  why: string,
): Result<Purge> {
  const found = brought(at, session);
  if (!found.ok) return found;
  const { digests, isHidden } = found.value;
  const head = { time_unix_ms: at.clock.nowUnixMs(), session, why };
  // The list comes first: from then on everything is hidden, whatever happens to the files.
  const said = appendPurge(at.disk, `${at.folder}/purged.jsonl`, { ...head, hidden: [...digests] });
  if (!said.ok) return said;
  for (const file of EDITABLE_FILES) {
    const text = readIdentity(at.disk, at.folder, file);
    // A file that is not in order is the owner's to mend; the block hides the entries anyway.
    if (!text.ok || !entriesOf(text.value).some(isHidden)) continue;
    const after = textOf(entriesOf(text.value).filter((entry) => !isHidden(entry)));
    const changed = hands.change(file, text.value, after, { kind: "purge", ...head });
    if (!changed.ok) return changed;
  }
  return found;
}

/** Whether every entry of a text may be shown; `memory-purged` when one may not. */
export function allShown(purged: Result<Purged>, text: string): Result<void> {
  if (!purged.ok) return purged;
  const hidden = entriesOf(text).some((entry) => purged.value.isHidden(entry));
  return hidden
    ? err("memory-purged", "The text holds an entry of a session that was purged")
    : ok(undefined);
}

function brought(at: StorePlace, session: SessionId): Result<Purge> {
  const lines = readJournal(at.disk, `${at.folder}/edits`);
  if (!lines.ok) return lines;
  const parsed = allNotes(at.disk, at.folder);
  if (!parsed.ok) return parsed;
  // The entries that its edits brought into a file, whether they are there still or not.
  const fresh = lines.value.flatMap(({ kind, session: by, before, after }) => {
    if (kind !== "edit" || by !== session || after === null) return [];
    const old = entriesOf(before ?? "");
    return entriesOf(after).filter((entry) => !old.includes(entry));
  });
  const digests = new Set(fresh.map(digestOf));
  const { isHidden, hidesNote } = hiding(new Set([session]), digests);
  const entries = EDITABLE_FILES.flatMap((file) => {
    const text = readIdentity(at.disk, at.folder, file);
    return entriesOf(text.ok ? text.value : "").filter(isHidden).map((text) => ({ file, text }));
  });
  const notes = parsed.value.notes.map(({ note }) => note).filter(hidesNote)
    .map(({ text }) => text);
  return ok({ entries, notes, digests, isHidden });
}
