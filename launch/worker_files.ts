// The local modules of memoryd's one Worker. A Worker's whole graph must be readable to the role that
// starts it, module by module, so the list is asked of Deno and never written by hand.
import { z } from "zod";
import type { Role } from "../shared/wire/sockets.ts";

/** The one module that memoryd starts as a Worker, below the source folder. */
export const WORKER_MODULE = "roles/memoryd/search_worker.ts";

const Graph = z.object({ modules: z.array(z.object({ local: z.string().nullish() })) });

/** Absolute paths of the Worker's local modules, sorted; empty for every role but memoryd. */
export function workerFiles(role: Role, source: string): string[] {
  if (role !== "memoryd") return [];
  const asked = new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "--no-remote", `${source}/${WORKER_MODULE}`],
    clearEnv: true,
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", DENO_DIR: "/dev/null/none" },
    stdout: "piped",
    stderr: "null",
  }).outputSync();
  if (!asked.success) return [];
  const { modules } = Graph.parse(JSON.parse(new TextDecoder().decode(asked.stdout)));
  return modules.flatMap(({ local }) => local ?? []).sort();
}
