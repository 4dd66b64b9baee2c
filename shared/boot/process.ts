// The life of a daemon's process: boot, start, serve until told to stop, leave nothing behind.
// Every daemon's main.ts is one call of `runRole`; this is the port through which they touch the
// environment, the exit status and signals.
import type { z } from "zod";
import { messageOf, type Result } from "../results/result.ts";
import { encodeUtf8 } from "../wire/codec.ts";
import type { Role } from "../wire/sockets.ts";
import { boot, type Booted } from "./boot.ts";

/** A role that serves. */
export interface Running {
  /** Stops serving and closes what is open; the process exits after it. */
  stop(): Promise<void>;
}

/** How long a stop may take before the process ends without it. */
const STOP_MS = 8_000;

/**
 * Boots `role`, runs `start`, and ends the process on SIGTERM or SIGINT. A refusal to start and a
 * thrown invariant are logged and end the process with status 1. `isOutside` tells apart what the
 * runtime itself lets go of when something outside breaks, and nobody can catch.
 */
export async function runRole<S extends z.ZodType>(
  role: Role,
  schema: S,
  start: (booted: Booted<z.output<S>>) => Promise<Result<Running>> | Result<Running>,
  isOutside: (reason: unknown) => boolean = () => false,
): Promise<void> {
  const booted = boot(role, schema, Deno.env.get("BOXMAKER_HOME"), writeLog);
  if (!booted.ok) {
    writeLog(`${role}: ${booted.code}: ${booted.detail}\n`);
    Deno.exit(1);
  }
  const { log, lock } = booted.value;
  globalThis.addEventListener("unhandledrejection", (event) => {
    if (isOutside(event.reason)) return event.preventDefault();
    log.error(`an invariant broke: ${stackOf(event.reason)}`);
    Deno.exit(1);
  });
  // Signals are taken before anything is served: one that comes earlier is kept until then.
  let running: Running | null = null;
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    if (running === null) return;
    const ending = running;
    running = null;
    setTimeout(() => Deno.exit(1), STOP_MS);
    await ending.stop();
    lock.release();
    Deno.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, stop);
  const started = await start(booted.value);
  if (!started.ok) {
    log.failure("cannot start", started);
    Deno.exit(1);
  }
  running = started.value;
  if (isStopping) await stop();
}

/** Writes to stderr. What a full disk or a closed pipe does not take is lost: no log stops its role. */
export function writeLog(text: string): void {
  try {
    Deno.stderr.writeSync(encodeUtf8(text));
  } catch {
    // There is nowhere left to say so.
  }
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.stack ?? messageOf(thrown) : messageOf(thrown);
}
