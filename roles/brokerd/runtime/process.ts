// Starting programs as a port. There is one program, Podman, and one environment, fixed when the port
// is made; only the arguments vary.
import type { Result } from "../../../shared/results/result.ts";

export interface Spawned {
  /** Writes all of `bytes` to standard input; false when nobody reads any more. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Ends standard input; a tool that still runs sees it and ends. */
  closeInput(): Promise<void>;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Closes every pipe: readers see their end at once, writers get no further. */
  abandon(): void;
  /** Exit status of Podman itself. */
  readonly exit: Promise<number>;
  /** Ends Podman at once; a container it started goes on. Does nothing after its end. */
  kill(): void;
}

export interface ProcessPort {
  /** Fails with `runtime-unavailable` when the program cannot be started. */
  spawn(args: readonly string[]): Result<Spawned>;
}
