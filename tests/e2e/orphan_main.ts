// A stand-in for a brokerd that is about to be killed: starts one container through the real process
// port, says so on stdout, and waits for its end. Arguments: the act of the test program, its seconds, the image.
import { containerName, runArgv } from "../../roles/brokerd/runtime/argv.ts";
import { callLine } from "../../roles/brokerd/runtime/call_line.ts";
import { denoProcesses } from "../../roles/brokerd/runtime/deno_process.ts";
import { podmanEnvironment } from "../../shared/podman/podman_env.ts";
import { planFor, PODMAN, testFolders } from "../doubles/container_house.ts";

const [what = "", seconds = "10", digest = ""] = Deno.args;
const folders = testFolders();
const base = planFor({ folder: "", digest, hasEscape: false }, "misbehave", { what });
const plan = { ...base, limits: { ...base.limits, timeout_s: Number(seconds) } };
const house = {
  runtime: "runc" as const,
  owner: "orphan",
  seccompFile: `${folders.store}/seccomp.json`,
  cgroupLimits: new Set<never>(),
};
const child = denoProcesses({
  path: PODMAN,
  environment: podmanEnvironment(folders),
  folder: folders.store,
}).spawn(runArgv(plan, house));
if (!child.ok) throw new Error(child.detail);
await child.value.write(callLine(plan.argsJson, "{}"));
const status = await child.value.exit;
console.log(status === 0 ? containerName(plan.callId) : `failed ${status}`);
for await (const _piece of child.value.stdout);
