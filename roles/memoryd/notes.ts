// The form of notes.md: an append-only list of notes, each a head line and a body.
//
// 1. A head line starts with `§ `. A body line that starts with `§` or a backslash gets a backslash
//    in front, so no text can be mistaken for a head, and the escape can be undone.
// 2. A note ends with a blank line. What stands before the first head, or under a head that does not
//    parse, has no label and is therefore never shown.
import { DataClass, type Label } from "../../shared/labels/label.ts";
import { isoTime } from "../../shared/clock/clock.ts";
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

/** A note where it stands: `number` counts heads from 1, offsets are in UTF-16 units. */
export type PlacedNote = {
  readonly note: Note;
  readonly number: number;
  readonly start: number;
  readonly end: number;
};

const HEAD =
  /^§ (note|moved|dropped) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) session ([A-Za-z0-9_-]{1,96}) label (public|private|secret) (trusted|untrusted)(?: from (memory|user)\.md)?$/;

/** The bytes-to-be of one note, its closing blank line included. */
export function renderNote(note: Note): string {
  const trust = note.label.untrusted ? "untrusted" : "trusted";
  const from = note.from === null ? "" : ` from ${note.from}.md`;
  const head = `§ ${note.kind} ${isoTime(note.timeUnixMs)} session ${note.session ?? "-"} ` +
    `label ${note.label.class} ${trust}${from}`;
  const body = note.text.split("\n").map((line) => /^[§\\]/.test(line) ? `\\${line}` : line);
  return `${head}\n${body.join("\n")}\n\n`;
}

/** What must be appended before another note, so that a text cut short ends on its own. */
export function closing(text: string): string {
  if (text === "" || text.endsWith("\n\n")) return "";
  return text.endsWith("\n") ? "\n" : "\n\n";
}

function headOf(line: string): Omit<Note, "text"> | null {
  const [, kind, time, session, level, trust, from] = HEAD.exec(line) ?? [];
  if (kind !== "note" && kind !== "moved" && kind !== "dropped") return null;
  const timeUnixMs = Date.parse(time ?? "");
  const dataClass = DataClass.safeParse(level);
  if (!Number.isSafeInteger(timeUnixMs) || !dataClass.success) return null;
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

/** The notes of a text that starts at a head or at the file's start, after `before` heads. */
export function parseNotes(text: string, before = 0): ParsedNotes {
  const notes: PlacedNote[] = [];
  const starts = headStarts(text);
  const preface = text.slice(0, starts[0] ?? text.length);
  let unlabelled = preface.trim() === "" ? 0 : 1;
  starts.forEach((start, i) => {
    const end = starts[i + 1] ?? text.length;
    const [line = "", ...body] = text.slice(start, end).split("\n");
    const head = headOf(line);
    if (head === null) unlabelled++;
    else {
      notes.push({ note: { ...head, text: bodyOf(body) }, number: before + i + 1, start, end });
    }
  });
  return { notes, heads: before + starts.length, unlabelled };
}

/** Places of lines that start with `§`; a line ends at a line feed and nothing else. */
function headStarts(text: string): number[] {
  const starts = text.startsWith("§") ? [0] : [];
  for (let at = text.indexOf("\n§"); at >= 0; at = text.indexOf("\n§", at + 1)) starts.push(at + 1);
  return starts;
}

function bodyOf(lines: readonly string[]): string {
  // The two last pieces are the end of the body's last line and the closing blank line.
  const body = lines.slice(0, lines.at(-1) === "" ? -1 : undefined);
  if (body.at(-1) === "" && body.length > 1) body.pop();
  return body.map((line) => line.startsWith("\\") ? line.slice(1) : line).join("\n");
}
