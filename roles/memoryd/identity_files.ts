// Reads the memory files whole. An identity file that is not UTF-8, is over its limit or cannot be read
// is refused by name and place; its bytes are never changed.
import type { Disk } from "../../shared/disk/disk.ts";
import { readWhole } from "../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { decodeLossy, decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { characters, fullness, type IdentityFile, LIMITS } from "./entries.ts";
import { type ParsedNotes, parseNotes } from "./notes.ts";

/** Far above what any limit allows in bytes; a longer file is over its limit for certain. */
const MAX_BYTES = 65_536;
const MAX_NOTES_BYTES = 268_435_456;

/** The text of one identity file. Fails with `memory-unavailable`, naming file and offset. */
export function readIdentity(disk: Disk, folder: string, file: IdentityFile): Result<string> {
  const name = `${file}.md`;
  const bytes = readWhole(disk, `${folder}/${name}`, MAX_BYTES);
  if (!bytes.ok) return err("memory-unavailable", `Cannot read ${name}: ${bytes.detail}`);
  const text = decodeUtf8(bytes.value);
  if (!text.ok) {
    const offset = firstBadByte(bytes.value);
    return err("memory-unavailable", `${name} is not UTF-8 at byte ${offset}`);
  }
  if (characters(text.value) <= LIMITS[file]) return text;
  const kept = encodeUtf8([...text.value].slice(0, LIMITS[file]).join("")).length;
  const detail = `${name} has ${fullness(file, text.value)}: over its limit from byte ${kept}`;
  return err("memory-unavailable", detail);
}

/** All notes, and what is in notes.md beside them. */
export function allNotes(disk: Disk, folder: string): Result<ParsedNotes> {
  const bytes = readWhole(disk, `${folder}/notes.md`, MAX_NOTES_BYTES);
  return bytes.ok ? ok(parseNotes(bytes.value)) : bytes;
}

/** Offset of the first byte that is not UTF-8; the length when all are. */
export function firstBadByte(bytes: Uint8Array): number {
  let offset = 0;
  for (const char of decodeLossy(bytes)) {
    const own = encodeUtf8(char);
    if (!own.every((byte, i) => byte === bytes[offset + i])) return offset;
    offset += own.length;
  }
  return offset;
}
