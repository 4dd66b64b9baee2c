// One call, from the start of its container to its certain end.
//
// 1. Output is counted as it streams; at the cap the container is removed.
// 2. Podman's client has ended before the tool's time counts; a client status that is not 0 means the
//    tool never ran, whatever it says.
// 3. A call is `ok` only by a well-formed result that agrees with what came. Everything else ends with
//    the container removed by name and by force.
import type { Clock } from "../../../shared/clock/clock.ts";
import { frameReader } from "../../../shared/tool/frames.ts";
import type { Spawned } from "./process.ts";
import type { PreparedCall } from "./call_line.ts";
import { podmanFailure } from "./failures.ts";
import type { RunIo, RunOutcome, RunPlan, RunStatus } from "./plan.ts";
import { type Podman, textOf } from "./podman.ts";
import { readResult } from "./tool_result.ts";

const START_MS = 60_000;
/** A tool has this long to end after its result. */
const GRACE_MS = 2_000;
/** Pipes are closed from our side when a removed container has not let go of them by then. */
const ABANDON_MS = 5_000;
const MAX_LOG_BYTES = 16_384;

type Ending = "timeout" | "output_capped" | "killed" | "broken" | "late_start";

interface Running {
  readonly child: Spawned;
  readonly podman: Podman;
  readonly clock: Clock;
  readonly name: string;
  /** Why the call was ended from our side, once it was. */
  ending: Ending | null;
  /** Settles when a tool that has given its result is certainly gone. */
  grace: Promise<void> | null;
  /** Settles when the removal that `end` began is done. */
  removal: Promise<void>;
  /** Aborts when the call is over: every timer goes. */
  readonly over: AbortController;
}

/** Runs a prepared call. Never rejects for an outside reason; the outcome says what happened. */
export async function runCall(
  call: PreparedCall,
  plan: RunPlan,
  io: RunIo,
  parts: { readonly podman: Podman; readonly clock: Clock },
): Promise<RunOutcome> {
  const { podman, clock } = parts;
  let bytes = 0;
  const rest = { code: null, containerName: call.name, log: "" };
  const done = (
    status: RunStatus,
    message: string,
    more: Partial<RunOutcome> = {},
  ): RunOutcome => ({ ...rest, status, message, ...more });
  if (io.signal.aborted) return done("killed", endingSentence("killed", plan));
  const spawned = podman.start(call.argv);
  if (!spawned.ok) {
    return done("could_not_start", NOT_STARTED, { code: spawned.code, log: spawned.detail });
  }
  const run: Running = {
    child: spawned.value,
    podman,
    clock,
    name: call.name,
    ending: null,
    grace: null,
    removal: Promise.resolve(),
    over: new AbortController(),
  };
  const abort = () => end(run, "killed");
  io.signal.addEventListener("abort", abort);
  const reader = frameReader((piece) => {
    const kept = piece.subarray(0, plan.limits.output_bytes - bytes);
    bytes += kept.length;
    if (kept.length > 0) io.onOutput(kept);
    if (kept.length < piece.length) end(run, "output_capped");
  });
  try {
    const [clientStatus, problem, log] = await follow(run, call, plan, reader);
    if (run.ending !== null && run.ending !== "broken" && run.ending !== "late_start") {
      return done(run.ending, endingSentence(run.ending, plan), { log });
    }
    // Whatever came on stdout came from the tool, so then it ran, even if its client was ended by us.
    if (run.ending === "late_start" || (clientStatus !== 0 && problem === null)) {
      const failure = podmanFailure(clientStatus, log);
      if (failure.code !== "call-already-started") await podman.remove(call.name);
      return done("could_not_start", NOT_STARTED, { code: failure.code, log: failure.detail });
    }
    const result = problem ?? readResult(reader.result(), bytes);
    if (typeof result !== "string") {
      return result.ok
        ? done("ok", result.note, { log })
        : done("tool_failed", result.message, { log });
    }
    end(run, "broken");
    return done("tool_failed", oomSentence(log, plan) ?? result, { log });
  } catch (thrown) {
    end(run, "broken");
    throw thrown;
  } finally {
    io.signal.removeEventListener("abort", abort);
    run.over.abort();
    await run.removal;
  }
}

const NOT_STARTED = "The tool could not be started here; the owner can see why";

/** Ends a call from our side, once: the container by name, as soon as Podman knows it. */
function end(run: Running, why: Ending): void {
  if (run.ending !== null) return;
  run.ending = why;
  run.removal = removeNow(run);
}

async function removeNow(run: Running): Promise<void> {
  // A client that is killed between making and starting a container leaves a process that no podman
  // command finds again. So it is waited for; the start has its own deadline.
  await run.child.exit;
  const removed = await run.podman.remove(run.name);
  // Podman's own clean-up may hold the container at this very moment; a second look settles it.
  if (!removed.ok) await run.podman.remove(run.name);
  await run.clock.sleep(ABANDON_MS, run.over.signal);
  if (!run.over.signal.aborted) run.child.abandon();
}

/** Everything that goes on while the call runs; returns client status, frame problem and log. */
async function follow(
  run: Running,
  call: PreparedCall,
  plan: RunPlan,
  reader: ReturnType<typeof frameReader>,
): Promise<readonly [number, string | null, string]> {
  const { child } = run;
  const written = child.write(call.line);
  const timers = timeLimits(run, plan);
  const [status, problem, log] = await Promise.all([
    child.exit,
    readOutput(run, reader),
    textOf(child.stderr, MAX_LOG_BYTES),
  ]);
  await written;
  await child.closeInput();
  run.over.abort();
  await timers;
  await run.grace;
  return [status, problem, log];
}

async function timeLimits(run: Running, plan: RunPlan): Promise<void> {
  const { clock, child, over } = run;
  const started = new AbortController();
  const stop = () => started.abort();
  over.signal.addEventListener("abort", stop);
  const late = clock.sleep(START_MS, started.signal).then(() => {
    if (started.signal.aborted) return;
    child.kill();
    end(run, "late_start");
  });
  await child.exit;
  started.abort();
  await late;
  over.signal.removeEventListener("abort", stop);
  await clock.sleep(plan.limits.timeout_s * 1_000, over.signal);
  if (!over.signal.aborted) end(run, "timeout");
}

async function readOutput(
  run: Running,
  reader: ReturnType<typeof frameReader>,
): Promise<string | null> {
  let problem: string | null = null;
  for await (const chunk of run.child.stdout) {
    // What comes after the end is read and dropped, so that the pipe never blocks a dying tool.
    if (run.ending !== null || problem !== null) continue;
    problem = reader.push(chunk);
    if (problem !== null) end(run, "broken");
    if (reader.result() !== null && run.grace === null) run.grace = endSoon(run);
  }
  // The end without a result is the end of the call; a client that failed has started nothing.
  if (reader.result() === null && (await run.child.exit) === 0) end(run, "broken");
  return problem;
}

/** After its result a tool is done: its input ends, and if it stays it is removed. */
async function endSoon(run: Running): Promise<void> {
  await run.child.closeInput();
  await run.clock.sleep(GRACE_MS, run.over.signal);
  if (run.over.signal.aborted) return;
  const removed = await run.podman.remove(run.name);
  if (!removed.ok) end(run, "broken");
}

function endingSentence(ending: Ending, plan: RunPlan): string {
  if (ending === "timeout") return `The tool was ended after ${plan.limits.timeout_s} s`;
  if (ending === "output_capped") {
    return `The tool's output was cut at ${plan.limits.output_bytes} bytes`;
  }
  return "The call was stopped";
}

function oomSentence(log: string, plan: RunPlan): string | null {
  if (!/out of memory/i.test(log)) return null;
  return `The tool ran out of its ${plan.limits.memory_mb} MB of memory`;
}
