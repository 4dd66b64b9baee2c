// What the owner has purged: `memory/purged.jsonl`, append-only, one line for each purged session.
//
// 1. A line names the session and the digests of the entries it brought into the identity files, so
//    that they stay hidden wherever they went, and the list itself holds none of their words.
// 2. Nothing ever takes a line away, so an index built anew hides what the old one hid.
import { z } from "zod";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { readWhole } from "../../shared/disk/durable.ts";
import { SessionId, Sha256 } from "../../shared/ids/ids.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import {
  canonicalText,
  decodeLossy,
  decodeUtf8,
  encodeUtf8,
  parseJson,
} from "../../shared/wire/codec.ts";
import { appendText } from "./append.ts";
import type { Note } from "./notes.ts";

const MAX_BYTES = 67_108_864;
const LINE_FEED = 10;

const Line = z.strictObject({
  session: SessionId,
  time_unix_ms: z.int().min(0),
  why: z.string().max(500),
  hidden: z.array(Sha256),
});
export type PurgeLine = z.output<typeof Line>;

/** What is hidden of some sessions. */
export type Hidden = {
  readonly sessions: ReadonlySet<string>;
  /** Whether an entry of this text is. */
  isHidden(text: string): boolean;
  /** Whether a note is: one that such a session wrote, or an entry of its that any session moved. */
  hidesNote(note: Note): boolean;
};
/** `purges` is the number of lines, which only grows. */
export type Purged = Hidden & { readonly purges: number };

/** Hides these sessions' notes, and entries by their digests. */
export function hiding(sessions: ReadonlySet<string>, digests: ReadonlySet<string>): Hidden {
  const isHidden = (text: string) => digests.has(digestOf(text));
  return {
    sessions,
    isHidden,
    hidesNote: ({ kind, session, text }) =>
      (kind === "note" && session !== null && sessions.has(session)) || isHidden(text),
  };
}

/** How a purge names a text. */
export function digestOf(text: string): string {
  return sha256Hex(encodeUtf8(text));
}

/**
 * Reads the list; an absent file is an empty one. Half a line at the end was never acknowledged and is
 * passed over. Fails with `record-invalid` for any other line that is not one.
 */
export function readPurged(disk: Disk, path: string): Result<Purged> {
  const bytes = wholeLines(disk, path);
  const text = bytes.ok ? decodeUtf8(bytes.value) : bytes;
  if (!text.ok) return text;
  const sessions = new Set<string>();
  const hidden = new Set<string>();
  const lines = text.value.split("\n").filter((line) => line !== "");
  for (const [i, line] of lines.entries()) {
    const parsed = lineOf(line);
    if (parsed === undefined) {
      return err("record-invalid", `Line ${i + 1} of ${path} is not a purge`);
    }
    sessions.add(parsed.session);
    for (const digest of parsed.hidden) hidden.add(digest);
  }
  return ok({ purges: lines.length, ...hiding(sessions, hidden) });
}

/** Appends a line durably, in the place of one that a crash cut short; the list's new size. */
export function appendPurge(disk: Disk, path: string, line: PurgeLine): Result<number> {
  const whole = wholeLines(disk, path);
  if (!whole.ok) return whole;
  // An editor may have taken the end of the last line.
  const end = (whole.value.at(-1) ?? LINE_FEED) === LINE_FEED ? "" : "\n";
  return appendText(disk, path, `${end}${canonicalText(line)}\n`, whole.value.length);
}

function lineOf(text: string): PurgeLine | undefined {
  const value = parseJson(text);
  return Line.safeParse(value.ok ? value.value : null).data;
}

function wholeLines(disk: Disk, path: string): Result<Uint8Array> {
  const bytes = readWhole(disk, path, MAX_BYTES);
  if (!bytes.ok) return bytes.code === "file-missing" ? ok(new Uint8Array()) : bytes;
  const end = bytes.value.lastIndexOf(LINE_FEED) + 1;
  const isWhole = lineOf(decodeLossy(bytes.value.subarray(end))) !== undefined;
  return isWhole ? bytes : ok(bytes.value.subarray(0, end));
}
