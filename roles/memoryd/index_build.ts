// The files of the index as files: exchange of a new one for the old, and the seal.
//
// 1. A new index takes the name only when it is complete and synced, and no WAL of the old one is left
//    to meet it.
// 2. The seal is a digest of the closed index. SQLite's own checks see no altered word in a full-text
//    index that holds no texts; the seal sees any altered byte. It is taken away before the index is
//    used, so it never speaks of another state.
import { createHash } from "node:crypto";
import {
  attempt,
  moveFile,
  readBytes,
  readText,
  removeFile,
  replaceFile,
} from "../../shared/disk/durable.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";

const CHUNK_BYTES = 1_048_576;
const SEAL_BYTES = 64;

/** Removes an index and what SQLite keeps beside it. */
export function clearIndex(disk: Disk, path: string): Result<void> {
  return removeAll(disk, [path, `${path}-wal`, `${path}-shm`, `${path}-journal`, sealOf(path)]);
}

/** Puts the closed, complete index `fresh` in the place of `path`, which nobody has open. */
export function exchangeIndex(disk: Disk, fresh: string, path: string): Result<void> {
  const removed = removeAll(disk, [`${path}-wal`, `${path}-shm`, sealOf(path)]);
  if (!removed.ok) return removed;
  const synced = attempt(() => {
    const file = disk.open(fresh, "read_write");
    try {
      file.sync();
    } finally {
      file.close();
    }
  });
  return synced.ok ? moveFile(disk, fresh, path) : synced;
}

function removeAll(disk: Disk, paths: readonly string[]): Result<void> {
  for (const path of paths) {
    const removed = removeFile(disk, path);
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}

const sealOf = (path: string) => `${path}.seal`;

/** Digest of a file, read piece by piece. */
function digestOf(disk: Disk, path: string): Result<string> {
  return attempt(() => {
    const file = disk.open(path, "read");
    try {
      const digest = createHash("sha256");
      for (;;) {
        const piece = readBytes(file, CHUNK_BYTES);
        if (piece.length === 0) return digest.digest("hex");
        digest.update(piece);
      }
    } finally {
      file.close();
    }
  });
}

/** Seals a closed index. */
export function sealIndex(disk: Disk, path: string): Result<void> {
  const digest = digestOf(disk, path);
  return digest.ok ? replaceFile(disk, sealOf(path), encodeUtf8(digest.value)) : digest;
}

/**
 * Takes the seal away and says what it says: `whole` (every byte is as it was sealed), `broken`, or
 * `none`, as after a crash.
 */
export function breakSeal(disk: Disk, path: string): Result<"whole" | "broken" | "none"> {
  const seal = readText(disk, sealOf(path), SEAL_BYTES);
  if (!seal.ok && seal.code === "file-missing") return ok("none");
  const digest = digestOf(disk, path);
  const removed = removeFile(disk, sealOf(path));
  if (!digest.ok) return digest;
  if (!removed.ok) return removed;
  const wal = attempt(() => disk.lstat(`${path}-wal`));
  const isAlone = !wal.ok && wal.code === "file-missing";
  return ok(seal.ok && seal.value === digest.value && isAlone ? "whole" : "broken");
}
