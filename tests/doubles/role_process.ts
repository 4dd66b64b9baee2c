// How a test starts a role's real process without the launcher: the same words before its own flags,
// an empty environment, a cache folder of the home's.
import type { Role } from "../../shared/wire/sockets.ts";

export const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname)
  .replace(/\/$/, "");

/** The words after `deno`; `v8` is what the engine is told beside what it always is. */
export function roleWords(role: Role, flags: readonly string[], v8 = ""): string[] {
  return [
    "run",
    "--no-prompt",
    "--cached-only",
    "--no-remote",
    `--config=${SOURCE}/deno.json`,
    `--v8-flags=--disallow-code-generation-from-strings${v8}`,
    ...flags,
    `${SOURCE}/roles/${role}/main.ts`,
  ];
}

/** Its whole environment and where its output goes. */
export function roleSurroundings(home: string) {
  return {
    clearEnv: true,
    env: { BOXMAKER_HOME: home, HOME: "/nonexistent", DENO_DIR: `${home}/cache`, NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  } as const;
}

/** Starts a role whose standard error goes to the end of its log in the home. */
export function startRole(
  role: Role,
  home: string,
  flags: readonly string[],
  v8 = "",
): Deno.ChildProcess {
  const log = `${home}/logs/${role}.log`;
  Deno.openSync(log, { append: true, create: true }).close();
  return new Deno.Command("/bin/sh", {
    args: [
      "-c",
      `exec "$0" "$@" 2>>"${log}"`,
      Deno.execPath(),
      ...roleWords(role, flags, v8),
    ],
    ...roleSurroundings(home),
  }).spawn();
}

/** Kilobytes that a process has for itself, shared pages by their share; null when it is gone. */
export function pssOf(pid: number): number | null {
  try {
    const rollup = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? NaN);
  } catch {
    return null; // It was killed a moment ago.
  }
}
