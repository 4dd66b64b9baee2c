// The host goes down during a call: the container, its monitor and Podman's helper process are gone and
// the runtime folder still speaks of them. The next start of brokerd clears up and runs calls again.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { containerName } from "../../roles/brokerd/runtime/argv.ts";
import { type PodmanFolders, runFolderOf } from "../../shared/podman/podman_env.ts";
import {
  NO_CONTAINERS,
  openTestHouse,
  planFor,
  podman,
  runPlan,
} from "../doubles/container_house.ts";

/** The process that keeps Podman's user namespace between its commands. */
function helperOf(folders: PodmanFolders): number {
  return Number(Deno.readTextFileSync(`${folders.run}/libpod/tmp/pause.pid`));
}

async function inOwnStore(work: (folders: PodmanFolders) => Promise<void>): Promise<void> {
  const base = await Deno.makeTempDir({ prefix: "bx-p-" });
  const store = `${base}/podman`;
  const folders = { store, run: runFolderOf(store) };
  try {
    await work(folders);
  } finally {
    // Any command brings the helper back when it is gone.
    await podman(["ps"], folders);
    const helper = helperOf(folders);
    await podman(["unshare", "rm", "-rf", `${store}/storage`, folders.run], folders);
    Deno.kill(helper, "SIGKILL");
    await Deno.remove(base, { recursive: true });
  }
}

Deno.test({
  name: NO_CONTAINERS === null
    ? "runtime a host that went down during a call is cleared up at the next start"
    : `runtime a host that went down during a call (skipped: ${NO_CONTAINERS})`,
  ignore: NO_CONTAINERS !== null,
  fn: async () => {
    await inOwnStore(async (folders) => {
      const house = await openTestHouse("restart", folders);
      strictEqual(house.runtime.status().state, "ready");
      const plan = planFor(house.image, "misbehave", { what: "hang" });
      const name = containerName(plan.callId);
      const lost = runPlan(house.runtime, plan);
      const format = "{{.State.Pid}} {{.State.ConmonPid}}";
      let pids = "";
      while (!/^[1-9]\d* [1-9]\d*$/.test(pids)) {
        pids = (await podman(["inspect", "--format", format, name], folders)).stdout.trim();
      }
      // The monitor first, so that it cannot clear up after the tool.
      const [tool = "", monitor = ""] = pids.split(" ");
      strictEqual((await podman(["unshare", "kill", "-9", monitor, tool], folders)).code, 0);
      Deno.kill(helperOf(folders), "SIGKILL");
      isTrue(["tool_failed", "could_not_start"].includes((await lost).status));

      const again = await openTestHouse("restart", folders);
      deepStrictEqual(again.runtime.status().state, "ready");
      const ran = await runPlan(
        again.runtime,
        planFor(again.image, "misbehave", { what: "denied" }),
      );
      strictEqual(ran.status, "ok");
      strictEqual((await podman(["container", "exists", name], folders)).code, 1);
    });
  },
});
