// The head file beside a log: the last acknowledged record, by number, hash and place. It is what
// makes a cut-off tail visible, so it is durable before any record is acknowledged.
//
// 1. It has two slots of one disk sector each, and each write goes into the older one, in place: one
//    sync instead of three. A write that a crash cut short spoils only the slot that it was for.
// 2. A slot holds its own SHA-256; the newest whole slot counts. Losing the newest to a crash leaves a
//    log that is longer than its head by whole records, which were not acknowledged.
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Disk } from "../disk/disk.ts";
import { overwrite, readWhole, replaceFile } from "../disk/durable.ts";
import { ok, type Result } from "../results/result.ts";
import { canonicalText, decodeUtf8, encodeUtf8, parseCanonicalText } from "../wire/codec.ts";
import { damage, damageErr, type Head } from "./chain_record.ts";

const SLOT_BYTES = 512;

const Slot = z.strictObject({
  v: z.literal(1),
  /** Name of the log file in the head's own folder or wherever its owner keeps it. */
  file: z.string().min(1).max(128),
  n: z.int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  start: z.int().min(0),
  end: z.int().min(1),
});
export type HeadFile = z.output<typeof Slot>;

export type Place = Head & { readonly start: number; readonly end: number };

/** The stored head, null when there is none; `log-broken` (head_invalid) when it is not one. */
export function readHead(disk: Disk, path: string): Result<HeadFile | null> {
  const slots = readSlots(disk, path);
  return slots.ok
    ? ok(slots.value === null ? null : slots.value[newest(slots.value)] ?? null)
    : slots;
}

type Slots = readonly [HeadFile | null, HeadFile | null];

function newest(slots: Slots): 0 | 1 {
  return (slots[1]?.n ?? -1) > (slots[0]?.n ?? -1) ? 1 : 0;
}

function readSlots(disk: Disk, path: string): Result<Slots | null> {
  const bytes = readWhole(disk, path, 2 * SLOT_BYTES);
  if (!bytes.ok && bytes.code === "file-missing") return ok(null);
  if (!bytes.ok && bytes.code !== "file-too-large") return bytes;
  if (bytes.ok && bytes.value.length === 2 * SLOT_BYTES) {
    const slot = (from: number) => parseSlot(bytes.value.subarray(from, from + SLOT_BYTES));
    const slots: Slots = [slot(0), slot(SLOT_BYTES)];
    if (slots[0] !== null || slots[1] !== null) return ok(slots);
  }
  return damageErr(path, damage("head_invalid", -1, 0, "This is no head file"));
}

function parseSlot(bytes: Uint8Array): HeadFile | null {
  const text = decodeUtf8(bytes);
  const match = text.ok ? /^(.*) ([0-9a-f]{64}) *\n$/s.exec(text.value) : null;
  const [, line = "", sum] = match ?? [];
  if (sum !== sumOf(line)) return null;
  const value = parseCanonicalText(line);
  const parsed = Slot.safeParse(value.ok ? value.value : null);
  return parsed.success ? parsed.data : null;
}

function renderSlot(head: HeadFile): Uint8Array {
  const line = canonicalText(Slot.parse(head));
  return encodeUtf8(`${line} ${sumOf(line)}`.padEnd(SLOT_BYTES - 1) + "\n");
}

function sumOf(line: string): string {
  return createHash("sha256").update(`boxmaker/head/v1\n${line}`).digest("hex");
}

/** Makes the head durable. */
export function writeHead(disk: Disk, path: string, file: string, place: Place): Result<void> {
  const { n, hash, start, end } = place;
  const head: HeadFile = { v: 1, file, n, hash, start, end };
  const slots = readSlots(disk, path);
  if (!slots.ok) return slots;
  if (slots.value === null) return replaceFile(disk, path, freshHead(head));
  return overwrite(disk, path, newest(slots.value) === 0 ? SLOT_BYTES : 0, renderSlot(head));
}

/** The bytes of a head file that was written once: `head` in the first slot, nothing in the other. */
export function freshHead(head: HeadFile): Uint8Array {
  const whole = encodeUtf8(" ".repeat(2 * SLOT_BYTES - 1) + "\n");
  whole.set(renderSlot(head));
  return whole;
}

/** The last element of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
