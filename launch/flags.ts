// The flag program behind `launch/serve`: prints a role's permission flags and its main module, one
// argument a line. Before a start it also makes the home's folders (0700) and refuses a home that
// another could have prepared: wrong owner or mode, a link, a foreign entry among the sockets.
// It reads the role's configuration and opens no connection.
import { err, ok, type Result } from "../shared/results/result.ts";
import { type Role, ROLES } from "../shared/wire/sockets.ts";
import { homeProblem } from "../shared/permissions/places.ts";
import { prepareHome } from "./home.ts";
import { roleFlags } from "./role_flags.ts";
import { workerFiles } from "./worker_files.ts";

/** The one Deno whose permission rules the flags were written for. */
export const PINNED_DENO = "2.9.6";

function commandLine(args: readonly string[]): Result<string[]> {
  const [mode, name, home, source] = args;
  const role: Role | undefined = ROLES.find((one) => one === name);
  if (role === undefined || home === undefined || source === undefined) {
    return err("launch-refused", "The flag program is called by launch/serve alone");
  }
  if (Deno.version.deno !== PINNED_DENO) {
    return err("launch-refused", `Deno is ${Deno.version.deno}, but ${PINNED_DENO} is needed`);
  }
  const problem = homeProblem(home);
  if (problem !== undefined) return err("launch-refused", problem);
  if (mode === "start") {
    const prepared = prepareHome(home);
    if (!prepared.ok) return prepared;
  }
  const flags = roleFlags(role, { home, source, workerFiles: workerFiles(role, source) });
  return flags.ok ? ok([...flags.value, `${source}/roles/${role}/main.ts`]) : flags;
}

if (import.meta.main) {
  const lines = commandLine(Deno.args);
  if (!lines.ok) {
    console.error(`serve: ${lines.code}: ${lines.detail}`);
    Deno.exit(2);
  }
  console.log(lines.value.join("\n"));
}
