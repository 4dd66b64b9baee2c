// The owner's stop: every new effect is refused at once and stays refused over restarts, until the
// owner resumes. A switch that cannot be read counts as stopped.
import { z } from "zod";
import type { Disk } from "../../shared/disk/disk.ts";
import { readWhole, replaceFile } from "../../shared/disk/durable.ts";
import type { Result } from "../../shared/results/result.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { AuditHead } from "../../shared/wire/parts.ts";
import { storedAs } from "./stored.ts";

const Stored = z.strictObject({
  v: z.literal(1),
  is_stopped: z.boolean(),
  why: z.string(),
  since_unix_ms: z.int().min(0),
  /** A head some caller holds and the audit log does not: the reason, or accepted by a resume. */
  witness: AuditHead.nullable(),
});
type Stored = z.output<typeof Stored>;

export interface StopSwitch {
  isStopped(): boolean;
  why(): string;
  /** The head that raised an alarm, which a resume has accepted since or not. */
  witness(): AuditHead | null;
  /** Holds in this process even when the file could not be written. */
  stop(why: string, since_unix_ms: number, witness: AuditHead | null): Result<void>;
  resume(since_unix_ms: number): Result<void>;
}

/** `said` is the audit log's last word, which holds as well: whoever of the two says stop is believed. */
export function stopSwitchAt(
  disk: Disk,
  path: string,
  said: "stop" | "resume" | null,
): StopSwitch {
  let now = load(disk, path);
  if (said === "stop" && !now.is_stopped) {
    now = { ...now, is_stopped: true, why: "The audit log says so" };
  }
  const keep = (next: Stored) => replaceFile(disk, path, encodeCanonical(next));
  return {
    isStopped: () => now.is_stopped,
    why: () => now.why,
    witness: () => now.witness,
    stop(why, since_unix_ms, witness) {
      now = { v: 1, is_stopped: true, why, since_unix_ms, witness: witness ?? now.witness };
      return keep(now);
    },
    resume(since_unix_ms) {
      const next = { ...now, is_stopped: false, why: "", since_unix_ms };
      const kept = keep(next);
      if (kept.ok) now = next;
      return kept;
    },
  };
}

function load(disk: Disk, path: string): Stored {
  const idle = { v: 1, is_stopped: false, why: "", since_unix_ms: 0, witness: null } as const;
  const bytes = readWhole(disk, path, 65_536);
  if (!bytes.ok && bytes.code === "file-missing") return idle;
  const unreadable = { ...idle, is_stopped: true, why: "The stop switch cannot be read" };
  return storedAs(Stored, bytes) ?? unreadable;
}
