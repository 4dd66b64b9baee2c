// One instance per role and home. The lock is the operating system's, on a file of its own, so it
// goes away with the process however that ends. It is taken before a stale socket is removed.
import type { Disk } from "./disk.ts";
import { attempt } from "./durable.ts";
import { err, ok, type Result } from "../results/result.ts";

export interface RoleLock {
  /** Gives the lock up; a role holds it for life and calls this last. */
  release(): void;
}

/** Takes the lock in `path` (made when absent); `already-running` when another process holds it. */
export function takeRoleLock(disk: Disk, path: string): Result<RoleLock> {
  const taken = attempt(() => {
    const file = disk.open(path, "append");
    try {
      if (file.tryLock()) return { release: () => file.close() };
    } catch (thrown) {
      file.close();
      throw thrown;
    }
    file.close();
    return null;
  });
  if (!taken.ok) return taken;
  if (taken.value !== null) return ok(taken.value);
  return err("already-running", `Cannot start as another instance holds the lock: ${path}`);
}
