// Prints where each role's flags let it connect, as words for `bxctl egress`, which may read no other
// role's configuration. Sockets of the house are no addresses. It reads and connects to nothing else.
import { ROLES } from "../shared/wire/sockets.ts";
import { roleFlags } from "./role_flags.ts";

/** `--reach=ROLE ADDRESS` for each address; `*` for a role without a fixed one. */
export function reach(home: string, source: string): string[] {
  return ROLES.flatMap((role) => {
    const flags = roleFlags(role, { home, source, workerFiles: [] });
    const found = flags.ok ? flags.value.flatMap(addressesOf) : [`unknown: ${flags.code}`];
    return found.map((address) => `--reach=${role} ${address}`);
  });
}

function addressesOf(flag: string): string[] {
  if (flag === "--allow-net") return ["*"];
  if (!flag.startsWith("--allow-net=")) return [];
  return flag.slice("--allow-net=".length).split(",").filter((one) => !one.startsWith("unix:"));
}

if (import.meta.main) {
  const [home, source] = Deno.args;
  if (home !== undefined && source !== undefined) console.log(reach(home, source).join("\n"));
}
