// What loopd's logic is given from outside: time, chance, files, a log, and the way to end itself.
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { mustEnd } from "../../shared/disk/durable.ts";
import type { Result } from "../../shared/results/result.ts";

export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  /** One line for the owner's log. */
  readonly log: (line: string) => void;
  /** Ends the process without answering anybody: the disk's state is unknown. */
  readonly fatal: (detail: string) => void;
}

/** Passes a result on, and ends the process when it says that nobody knows what is on the disk. */
export function durable<T>(ports: Ports, result: Result<T>): Result<T> {
  if (!result.ok && mustEnd(result)) ports.fatal(result.detail);
  return result;
}
