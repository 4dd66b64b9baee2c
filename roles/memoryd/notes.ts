// The form of notes.md: an append-only list of notes, each a head line and a body.
//
// 1. A head line starts with `§ `. A body line that starts with `§` or a backslash gets a backslash
//    in front, so no text can be mistaken for a head, and the escape can be undone.
// 2. A note begins with a line feed, so it is whole whatever was cut short before it. What stands
//    before the first head, or under a head that does not parse, has no label and is therefore never
//    shown. The same goes for lines that are not UTF-8: a power cut may leave one, and it must not
//    take others with it.
import { DataClass, type Label } from "../../shared/labels/label.ts";
import { isoTime } from "../../shared/clock/clock.ts";
import { decodeLossy, decodeUtf8 } from "../../shared/wire/codec.ts";
import type { EditableFile } from "./entries.ts";

export type Note = {
  readonly kind: "note" | "moved" | "dropped";
  readonly timeUnixMs: number;
  /** The session it came from; null when the owner's own act brought it in. */
  readonly session: string | null;
  readonly label: Label;
  /** The identity file it left, for `moved` and `dropped`. */
  readonly from: EditableFile | null;
  readonly text: string;
};

/** A note where it stands: `number` counts heads from 1, `start` is in bytes. */
export type PlacedNote = {
  readonly note: Note;
  readonly number: number;
  readonly start: number;
};

/** How each note begins. */
export const NOTE_START = "\n§";

const HEAD =
  /^§ (note|moved|dropped) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) session ([A-Za-z0-9_-]{1,96}) label (public|private|secret) (trusted|untrusted)(?: from (memory|user)\.md)?$/;

/** The bytes-to-be of one note, the blank line before it included. */
export function renderNote(note: Note): string {
  const trust = note.label.untrusted ? "untrusted" : "trusted";
  const from = note.from === null ? "" : ` from ${note.from}.md`;
  const head =
    `${NOTE_START} ${note.kind} ${isoTime(note.timeUnixMs)} session ${note.session ?? "-"} ` +
    `label ${note.label.class} ${trust}${from}`;
  const body = note.text.split("\n").map((line) => /^[§\\]/.test(line) ? `\\${line}` : line);
  return `${head}\n${body.join("\n")}\n`;
}

type Head = Omit<Note, "text">;

function headOf(line: string): Head | null {
  const [, kind, time, session, level, trust, from] = HEAD.exec(line) ?? [];
  if (kind !== "note" && kind !== "moved" && kind !== "dropped") return null;
  const timeUnixMs = Date.parse(time ?? "");
  const dataClass = DataClass.safeParse(level);
  // An index has no place for a time before 1970, as for none.
  if (!(timeUnixMs >= 0) || !dataClass.success) return null;
  return {
    kind,
    timeUnixMs,
    session: session === "-" ? null : session ?? null,
    label: { class: dataClass.data, untrusted: trust !== "trusted" },
    from: from === "memory" || from === "user" ? from : null,
  };
}

export type ParsedNotes = {
  readonly notes: readonly PlacedNote[];
  /** Heads seen, parsed or not. */
  readonly heads: number;
  /** Parts of the text that belong to no note and so have no label. */
  readonly unlabelled: number;
};

/** The notes of bytes that start at a head or at the file's start, after `before` heads. */
export function parseNotes(bytes: Uint8Array, before = 0): ParsedNotes {
  const found: { head: Head; number: number; start: number; body: string[] }[] = [];
  let heads = before;
  let unlabelled = 0;
  /** Where a line goes that is no head; null where it has no label. */
  let body: string[] | null = null;
  for (const { start, text, isWhole } of linesOf(bytes)) {
    if (text.startsWith("§")) {
      heads++;
      const head = isWhole ? headOf(text) : null;
      body = head === null ? null : [];
      if (head === null || body === null) unlabelled++;
      else found.push({ head, number: heads, start, body });
    } else if (!isWhole) unlabelled++;
    else if (body !== null) body.push(text.startsWith("\\") ? text.slice(1) : text);
    else if (heads === before && text.trim() !== "") unlabelled++;
  }
  // A note's text is stored tidied, so blank lines at the end are the form's, not the text's.
  const notes = found.map(({ head, number, start, body }) => {
    const end = body.findLastIndex((line) => line !== "") + 1;
    return { note: { ...head, text: body.slice(0, end).join("\n") }, number, start };
  });
  return { notes, heads, unlabelled };
}

const LINE_FEED = 10;

/** Lines with their places; a line ends at a line feed and nothing else. */
function* linesOf(bytes: Uint8Array): Generator<{ start: number; text: string; isWhole: boolean }> {
  for (let start = 0; start < bytes.length;) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const line = bytes.subarray(start, feed < 0 ? bytes.length : feed);
    const text = decodeUtf8(line);
    // What is no UTF-8 is looked at only for whether it begins as a head.
    yield { start, text: text.ok ? text.value : decodeLossy(line), isWhole: text.ok };
    start = feed < 0 ? bytes.length : feed + 1;
  }
}
