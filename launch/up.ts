// `deno task up`: every daemon of one home, for development. Prints who runs and who died; ends all
// of them on SIGINT or SIGTERM. Options: --ready-file FILE is written once all sockets accept (the
// process ids, as JSON); --with JSON is the argv of one more program to keep alive, such as a model
// server; --only ROLE,ROLE starts some of the roles.
import { parseArgs } from "node:util";
import { runMain, stopSignal } from "./command.ts";
import { prepareHome } from "./home.ts";
import { DAEMONS, type Program, roleProgram, supervise } from "./supervisor.ts";

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
  const given = Deno.env.get("BOXMAKER_HOME") ?? "/var/lib/boxmaker";
  const home = realHome(given);
  const source = Deno.realPathSync(new URL("..", import.meta.url));
  const prepared = prepareHome(home);
  if (!prepared.ok) throw new Error(`${prepared.code}: ${prepared.detail}`);
  const only = values.only?.split(",");
  const roles = DAEMONS.filter((role) => only === undefined || only.includes(role));
  const programs = [
    ...extra(values.with),
    ...roles.map((role) => roleProgram(role, home, source)),
  ];
  const stopped = stopSignal();
  const say = (line: string) => console.error(`up: ${line}`);
  const supervisor = supervise({ home, programs, say });
  say(`starting ${programs.map((program) => program.name).join(" ")} at ${home}`);
  const isReady = await Promise.race([supervisor.ready(READY_MS), stopped.then(() => false)]);
  if (isReady) {
    say("ready");
    if (values["ready-file"] !== undefined) announce(values["ready-file"], supervisor.pids());
  }
  await stopped;
  say("stopping");
  await supervisor.stop();
  return 0;
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
