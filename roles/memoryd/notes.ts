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
import { decodeUtf8 } from "../../shared/wire/codec.ts";
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

const HEAD =
  /^§ (note|moved|dropped) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) session ([A-Za-z0-9_-]{1,96}) label (public|private|secret) (trusted|untrusted)(?: from (memory|user)\.md)?$/;

/** The bytes-to-be of one note, the blank line before it included. */
export function renderNote(note: Note): string {
  const trust = note.label.untrusted ? "untrusted" : "trusted";
  const from = note.from === null ? "" : ` from ${note.from}.md`;
  const head = `§ ${note.kind} ${isoTime(note.timeUnixMs)} session ${note.session ?? "-"} ` +
    `label ${note.label.class} ${trust}${from}`;
  const body = note.text.split("\n").map((line) => /^[§\\]/.test(line) ? `\\${line}` : line);
  return `\n${head}\n${body.join("\n")}\n`;
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

/** The notes of bytes that start at a head or at the file's start, after `before` heads. */
export function parseNotes(bytes: Uint8Array, before = 0): ParsedNotes {
  const notes: PlacedNote[] = [];
  const starts = headStarts(bytes);
  const preface = readableLines(bytes.subarray(0, starts[0] ?? bytes.length));
  let unlabelled = preface.left + (preface.lines.join("").trim() === "" ? 0 : 1);
  starts.forEach((start, i) => {
    const { lines: [line = "", ...body], left } = readableLines(
      bytes.subarray(start, starts[i + 1]),
    );
    const head = headOf(line);
    unlabelled += left;
    if (head === null) unlabelled++;
    else notes.push({ note: { ...head, text: bodyOf(body) }, number: before + i + 1, start });
  });
  return { notes, heads: before + starts.length, unlabelled };
}

/** The lines that are UTF-8, and the number of those left out. */
function readableLines(bytes: Uint8Array): { lines: string[]; left: number } {
  const whole = decodeUtf8(bytes);
  if (whole.ok) return { lines: whole.value.split("\n"), left: 0 };
  const lines: string[] = [];
  let left = 0;
  for (let from = 0; from <= bytes.length;) {
    const to = bytes.indexOf(LINE_FEED, from);
    const line = decodeUtf8(bytes.subarray(from, to < 0 ? bytes.length : to));
    if (line.ok) lines.push(line.value);
    else left++;
    if (to < 0) break;
    from = to + 1;
  }
  return { lines, left };
}

const LINE_FEED = 10;

/** Places of lines that start with `§` (C2 A7); a line ends at a line feed and nothing else. */
function headStarts(bytes: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 0; at >= 0 && at < bytes.length;) {
    if (bytes[at] === 0xc2 && bytes[at + 1] === 0xa7) starts.push(at);
    const next = bytes.indexOf(LINE_FEED, at);
    at = next < 0 ? next : next + 1;
  }
  return starts;
}

/** A note's text is stored tidied, so blank lines at the end are the form's, not the text's. */
function bodyOf(lines: readonly string[]): string {
  const body = lines.map((line) => line.startsWith("\\") ? line.slice(1) : line);
  return body.join("\n").replace(/\n+$/, "");
}
