// Podman's commands as this role uses them: each bounded in time and in the text it may answer. Ending
// a container is always by name and by force, and nothing is matched but names and labels of our own.
import type { Clock } from "../../../shared/clock/clock.ts";
import { decodeLossy } from "../../../shared/wire/codec.ts";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { OWNER_LABEL, podmanArgs } from "./argv.ts";
import { podmanFailure } from "./failures.ts";
import type { ProcessPort, Spawned } from "./process.ts";

/** Longest text kept of one podman answer. */
const MAX_ANSWER_BYTES = 4_194_304;
const COMMAND_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Podman {
  /** Runs one command to its end; the status may be anything. */
  ask(args: readonly string[]): Promise<Result<Answer>>;
  /** Starts a container's client, whose pipes become the tool's. */
  start(argv: readonly string[]): Result<Spawned>;
  /** Ends and removes a container, whatever its state; one that is gone already is fine. */
  remove(name: string): Promise<Result<null>>;
  /** Removes every container with this owner label; returns how many were listed. */
  sweep(owner: string): Promise<Result<number>>;
}

/** Podman over a process port, always with the same runtime flag. */
export function podmanOver(port: ProcessPort, clock: Clock, runtime: "runc" | "crun"): Podman {
  const ask = (args: readonly string[]) => answer(port, clock, [...podmanArgs(runtime), ...args]);
  return {
    ask,
    start: (argv) => port.spawn(argv),
    async remove(name) {
      const removed = await ask(["rm", "-f", "-t", "0", "--ignore", name]);
      return succeeded(removed);
    },
    async sweep(owner) {
      const filter = `label=${OWNER_LABEL}=${owner}`;
      const listed = await ask(["ps", "-aq", "--filter", filter]);
      if (!listed.ok) return listed;
      if (listed.value.status !== 0) return podmanFailure(listed.value.status, listed.value.stderr);
      const count = listed.value.stdout.split("\n").filter((line) => line.trim() !== "").length;
      if (count === 0) return ok(0);
      const removed = succeeded(await ask(["rm", "-f", "-t", "0", "--filter", filter]));
      return removed.ok ? ok(count) : removed;
    },
  };
}

function succeeded(answered: Result<Answer>): Result<null> {
  if (!answered.ok) return answered;
  const { status, stderr } = answered.value;
  return status === 0 ? ok(null) : podmanFailure(status, stderr);
}

async function answer(
  port: ProcessPort,
  clock: Clock,
  args: readonly string[],
): Promise<Result<Answer>> {
  const spawned = port.spawn(args);
  if (!spawned.ok) return spawned;
  const child = spawned.value;
  const deadline = new AbortController();
  let isLate = false;
  const alarm = clock.sleep(COMMAND_MS, deadline.signal).then(() => {
    isLate = !deadline.signal.aborted;
    if (!isLate) return;
    child.kill();
    // What Podman has started may outlive it and hold its pipes.
    child.abandon();
  });
  await child.closeInput();
  const [status, stdout, stderr] = await Promise.all([
    child.exit,
    textOf(child.stdout, MAX_ANSWER_BYTES),
    textOf(child.stderr, MAX_ANSWER_BYTES),
  ]);
  deadline.abort();
  await alarm;
  if (isLate) return err("runtime-unavailable", `Podman did not answer within ${COMMAND_MS} ms`);
  return ok({ status, stdout, stderr });
}

/** The first `maxBytes` of a stream as text; the rest is read and dropped, so nobody blocks. */
export async function textOf(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const pieces: string[] = [];
  let left = maxBytes;
  for await (const piece of stream) {
    const kept = piece.subarray(0, left);
    left -= kept.length;
    if (kept.length > 0) pieces.push(decodeLossy(kept));
  }
  return pieces.join("");
}
