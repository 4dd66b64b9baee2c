// Keeps the daemons of one home running for development: starts each through launch/serve under its
// real flags, restarts what dies with a growing pause, keeps each role's log, stops all on request.
// It holds no permission check of its own; it is no part of a deployment, where units take its place.
import { systemClock } from "../shared/clock/clock.ts";
import { type Role, ROLES, servedBy, socketPath } from "../shared/wire/sockets.ts";
import { escapeForDisplay } from "../shared/text/escape.ts";
import { messageOf } from "../shared/results/result.ts";

export const DAEMONS: readonly Role[] = ROLES.filter((role) => role !== "bxctl");

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
const STEADY_MS = 20_000;
const STOP_MS = 10_000;
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/** One program to keep alive. `argv[0]` is an absolute path; `env` is its whole environment. */
export type Program = {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

export type SupervisorOptions = {
  readonly home: string;
  readonly programs: readonly Program[];
  /** One line for the person who watches. */
  readonly say: (line: string) => void;
};

export interface Supervisor {
  /** Resolves true once every role's sockets accept; false after `withinMs` or when stopped. */
  ready(withinMs: number): Promise<boolean>;
  /** Ends everything: SIGTERM, then SIGKILL for what stays; resolves when all are gone. */
  stop(): Promise<void>;
  /** The process ids that run now, by program name. */
  pids(): ReadonlyMap<string, number>;
}

/** The program that is `role` under its exact flags, at `home`, from `source`. */
export function roleProgram(role: Role, home: string, source: string): Program {
  return {
    name: role,
    argv: ["/bin/sh", `${source}/launch/serve`, role],
    env: { ...secretsOf(Deno.env.toObject()), BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() },
  };
}

function secretsOf(all: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(all).filter(([key]) => /^BOXMAKER_SECRET_/.test(key)));
}

/** Starts every program at once and keeps them running until `stop`. */
export function supervise(options: SupervisorOptions): Supervisor {
  const running = new Map<string, Deno.ChildProcess>();
  const stopping = new AbortController();
  const loops = options.programs.map((program) => keep(program, options, running, stopping.signal));
  return {
    ready: (withinMs) => ready(options, withinMs, stopping.signal),
    pids: () => new Map([...running].map(([name, child]) => [name, child.pid])),
    async stop() {
      stopping.abort();
      for (const child of running.values()) signal(child, "SIGTERM");
      const killer = setTimeout(() => {
        for (const [name, child] of running) {
          options.say(`${name} does not end; killing it`);
          signal(child, "SIGKILL");
        }
      }, STOP_MS);
      await Promise.all(loops);
      clearTimeout(killer);
    },
  };
}

async function keep(
  program: Program,
  options: SupervisorOptions,
  running: Map<string, Deno.ChildProcess>,
  stopping: AbortSignal,
): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS;
  while (!stopping.aborted) {
    const startedMs = performance.now();
    const child = start(program, options);
    running.set(program.name, child);
    const status = await child.status;
    running.delete(program.name);
    if (stopping.aborted) return;
    if (performance.now() - startedMs > STEADY_MS) pauseMs = FIRST_PAUSE_MS;
    const end = status.signal === null ? `status ${status.code}` : status.signal;
    options.say(`${program.name} ended (${end}): ${lastLine(options.home, program.name)}`);
    await systemClock.sleep(pauseMs, stopping);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/** The shell opens the log, so no pipe ties the program's life to this one's. */
function start(program: Program, { home, say }: SupervisorOptions): Deno.ChildProcess {
  const log = logFile(home, program.name);
  rotate(log, say);
  const script = 'umask 077; log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1';
  return new Deno.Command("/bin/sh", {
    args: ["-c", script, "sh", log, ...program.argv],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", ...program.env },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

/** Where a program's stderr is kept, mode 0600. */
export function logFile(home: string, name: string): string {
  return `${home}/logs/${name}.log`;
}

/** A log that cannot be put aside grows on: no reason to leave a program unwatched. */
function rotate(log: string, say: (line: string) => void): void {
  try {
    if (Deno.statSync(log).size > MAX_LOG_BYTES) Deno.renameSync(log, `${log}.1`);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return;
    say(`${log} cannot be put aside: ${messageOf(thrown)}`);
  }
}

function lastLine(home: string, name: string): string {
  try {
    const lines = Deno.readTextFileSync(logFile(home, name)).trimEnd().split("\n");
    return escapeForDisplay(lines.at(-1)?.slice(-1_000) ?? "", "line");
  } catch (thrown) {
    return messageOf(thrown);
  }
}

function signal(child: Deno.ChildProcess, name: "SIGTERM" | "SIGKILL"): void {
  try {
    child.kill(name);
  } catch (thrown) {
    // It ended by itself in the meantime, which is what the signal is for.
    if (!(thrown instanceof TypeError)) throw thrown;
  }
}

/** Those of the roles whose sockets somebody serves at `home`. */
export async function rolesAtWork(home: string, roles: readonly Role[]): Promise<Role[]> {
  const found: Role[] = [];
  for (const role of roles) {
    const answers = await Promise.all(socketsOf(home, role).map(accepts));
    if (answers.includes(true)) found.push(role);
  }
  return found;
}

const socketsOf = (home: string, role: Role) =>
  servedBy(role).map((name) => socketPath(home, name));

async function ready(
  options: SupervisorOptions,
  withinMs: number,
  stopping: AbortSignal,
): Promise<boolean> {
  const wanted = DAEMONS.filter((role) => options.programs.some((one) => one.name === role))
    .flatMap((role) => socketsOf(options.home, role));
  const untilMs = performance.now() + withinMs;
  const open = new Set<string>();
  while (performance.now() < untilMs && !stopping.aborted) {
    for (const path of wanted) if (!open.has(path) && await accepts(path)) open.add(path);
    if (open.size === wanted.length) return true;
    await systemClock.sleep(25, stopping);
  }
  return false;
}

async function accepts(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch {
    return false; // absent or refusing: not ready yet, which is the answer
  }
}
