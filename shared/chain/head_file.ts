// The head file beside a log: the last acknowledged record, by number, hash and place. It is what
// makes a cut-off tail visible, so it is replaced durably before any record is acknowledged.
import { z } from "zod";
import type { Disk } from "../disk/disk.ts";
import { readWhole, replaceFile } from "../disk/durable.ts";
import { ok, type Result } from "../results/result.ts";
import { encodeCanonical, parseCanonical } from "../wire/codec.ts";
import { damage, damageErr, type Head } from "./chain_record.ts";

const HeadFileSchema = z.strictObject({
  v: z.literal(1),
  /** Name of the log file in the head's own folder or wherever its owner keeps it. */
  file: z.string().min(1).max(255),
  n: z.int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  start: z.int().min(0),
  end: z.int().min(1),
});
export type HeadFile = z.output<typeof HeadFileSchema>;

export type Place = Head & { readonly start: number; readonly end: number };

/** The stored head, null when there is none; `log-broken` (head_invalid) when it is not one. */
export function readHead(disk: Disk, path: string): Result<HeadFile | null> {
  const bytes = readWhole(disk, path, 4_096);
  if (!bytes.ok && bytes.code === "file-missing") return ok(null);
  if (!bytes.ok && bytes.code !== "file-too-large") return bytes;
  const value = bytes.ok ? parseCanonical(bytes.value) : bytes;
  const parsed = HeadFileSchema.safeParse(value.ok ? value.value : null);
  if (parsed.success) return ok(parsed.data);
  return damageErr(path, damage("head_invalid", -1, 0, "This is no head file"));
}

/** Replaces the head durably. */
export function writeHead(disk: Disk, path: string, file: string, place: Place): Result<void> {
  const { n, hash, start, end } = place;
  return replaceFile(disk, path, encodeCanonical({ v: 1, file, n, hash, start, end }));
}

/** The last element of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
