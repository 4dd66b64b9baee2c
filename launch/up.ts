// `deno task up`: every daemon of one home, for development. Prints who runs and who died; ends all
// of them on SIGINT or SIGTERM. Options: --ready-file FILE is written once all sockets accept (the
// process ids, as JSON); --with JSON is the argv of one more program to keep alive, such as a model
// server; --only ROLE,ROLE starts some of the roles.
import { parseArgs } from "node:util";
import { runMain, stopSignal } from "./command.ts";
import { prepareHome } from "./home.ts";
import { DAEMONS, type Program, roleProgram, rolesAtWork, supervise } from "./supervisor.ts";

const READY_MS = 60_000;

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      "ready-file": { type: "string" },
      with: { type: "string" },
      only: { type: "string" },
    },
  });
  const only: readonly string[] = values.only?.split(",") ?? DAEMONS;
  const roles = DAEMONS.filter((role) => only.includes(role));
  const unknown = only.find((name) => !roles.some((role) => role === name));
  if (unknown !== undefined) throw new Error(`There is no role ${unknown} among ${DAEMONS}`);
  const given = Deno.env.get("BOXMAKER_HOME") ?? "/var/lib/boxmaker";
  const home = realHome(given);
  const source = Deno.realPathSync(new URL("..", import.meta.url));
  const prepared = prepareHome(home);
  if (!prepared.ok) throw new Error(`${prepared.code}: ${prepared.detail}`);
  const others = await rolesAtWork(home, roles);
  if (others.length > 0) throw new Error(`${others} at ${home} runs already; end it first`);
  const programs = [
    ...extra(values.with),
    ...roles.map((role) => roleProgram(role, home, source)),
  ];
  const stopped = stopSignal();
  const say = (line: string) => console.error(`up: ${line}`);
  const supervisor = supervise({ home, programs, say });
  say(`starting ${programs.map((program) => program.name).join(" ")} at ${home}`);
  try {
    const isReady = await Promise.race([supervisor.ready(READY_MS), stopped.then(() => null)]);
    if (isReady === true) {
      say("ready");
      if (values["ready-file"] !== undefined) announce(values["ready-file"], supervisor.pids());
    } else if (isReady === false) {
      say(`not ready after ${READY_MS / 1_000} s: bxctl doctor says what is missing`);
    }
    await stopped;
    say("stopping");
    return 0;
  } finally {
    await supervisor.stop();
  }
}

function realHome(given: string): string {
  try {
    return Deno.realPathSync(given);
  } catch {
    throw new Error(
      `There is no home folder at ${given}; make it (mkdir -m 700) or set BOXMAKER_HOME`,
    );
  }
}

function extra(json: string | undefined): Program[] {
  if (json === undefined) return [];
  const argv: unknown = JSON.parse(json);
  if (!Array.isArray(argv) || !argv.every((item) => typeof item === "string")) {
    throw new TypeError("--with is a JSON array of strings");
  }
  return [{ name: "model", argv, env: { NO_COLOR: "1" } }];
}

function announce(path: string, pids: ReadonlyMap<string, number>): void {
  Deno.writeTextFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(pids)) + "\n");
  Deno.renameSync(`${path}.new`, path);
}

if (import.meta.main) await runMain("up", main);
