// Builds an index anew beside the old one and puts it in the old one's place. The new one takes the
// name only when it is complete and synced, and no WAL of the old one is left to meet it.
import { attempt, removeFile } from "../../shared/disk/durable.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { ok, type Result } from "../../shared/results/result.ts";

/** Removes an index and what SQLite keeps beside it. */
export function clearIndex(disk: Disk, path: string): Result<void> {
  return removeAll(disk, [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]);
}

/** Puts the closed, complete index `fresh` in the place of `path`, which nobody has open. */
export function exchangeIndex(
  disk: Disk,
  folder: string,
  fresh: string,
  path: string,
): Result<void> {
  const removed = removeAll(disk, [`${path}-wal`, `${path}-shm`]);
  if (!removed.ok) return removed;
  return attempt(() => {
    const file = disk.open(fresh, "read_write");
    try {
      file.sync();
    } finally {
      file.close();
    }
    const names = disk.openFolder(folder);
    try {
      disk.rename(fresh, path);
      names.sync();
    } finally {
      names.close();
    }
  });
}

function removeAll(disk: Disk, paths: readonly string[]): Result<void> {
  for (const path of paths) {
    const removed = removeFile(disk, path);
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}
