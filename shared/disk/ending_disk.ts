// A disk on which no failed sync is lived with: nobody knows what is on it then, and a second sync would
// say that all is well.
import { type Disk, DiskError } from "./disk.ts";
import { attempt } from "./durable.ts";

/** The same disk; a sync that fails calls `fatal`, which ends the process and does not return. */
export function endingDisk(disk: Disk, fatal: (detail: string) => void): Disk {
  const watched = <T extends { sync(): void }>(opened: T): T => ({
    ...opened,
    sync() {
      const synced = attempt(() => opened.sync());
      if (synced.ok) return;
      fatal(synced.detail);
      throw new DiskError("sync_failed", synced.detail);
    },
  });
  return {
    ...disk,
    open: (path, mode) => watched(disk.open(path, mode)),
    openFolder: (path) => watched(disk.openFolder(path)),
  };
}
