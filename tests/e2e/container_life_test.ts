// Around real containers: nothing outlives its caller, nothing is left behind, no secret is anywhere on
// the way, nobody's configuration gets in, and a changed image does not run.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { containerName, OWNER_LABEL } from "../../roles/brokerd/runtime/argv.ts";
import { layerFolders } from "../../roles/brokerd/runtime/image_check.ts";
import { denoProcesses } from "../../roles/brokerd/runtime/deno_process.ts";
import { openRuntime } from "../../roles/brokerd/runtime/open_runtime.ts";
import { podmanOver } from "../../roles/brokerd/runtime/podman.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { podmanEnvironment } from "../../shared/podman/podman_env.ts";
import {
  type ContainerHouseForTests,
  containerTest,
  inGrantFolder,
  openTestHouse,
  planFor,
  podman,
  runPlan,
  testFolders,
  type TestImage,
} from "../doubles/container_house.ts";

const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname);

/** Asks until `holds` does, for at most `seconds`; the test fails after that. */
async function eventually(seconds: number, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  while (!await holds()) {
    if (performance.now() > end) throw new Error(`Still not so after ${seconds} s`);
    await new Promise<void>((resolve) => setTimeout(resolve, 100));
  }
}

const isGone = async (name: string) => (await podman(["container", "exists", name])).code === 1;

/** Starts a container from a process of its own and returns both. */
async function startOrphan(h: ContainerHouseForTests, what: string, seconds: number) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", `${ROOT}tests/e2e/orphan_main.ts`, what, String(seconds), h.image.digest],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.getReader();
  const said = new TextDecoder().decode((await reader.read()).value).trim();
  isTrue(said.startsWith("bx-c-"), said);
  return {
    name: said,
    kill: async () => {
      child.kill("SIGKILL");
      await child.status;
      await reader.cancel();
    },
  };
}

containerTest("container a tool whose caller was killed ends, whatever it does", async (h) => {
  // A reader sees its input end, a writer its pipe break; console.log ignores both and meets its limit.
  const kinds = [["hang", 60], ["write_on", 60], ["spin_on_output", 2]] as const;
  await Promise.all(kinds.map(async ([what, seconds]) => {
    const orphan = await startOrphan(h, what, seconds);
    await orphan.kill();
    await eventually(20, () => isGone(orphan.name));
  }));
});

containerTest(
  "container a call stopped at any moment of its start leaves no process",
  async (h) => {
    const moments = Array.from({ length: 16 }, (_, index) => index * 25);
    const names = await Promise.all(moments.map(async (ms) => {
      const plan = planFor(h.image, "misbehave", { what: "hang" });
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(), ms);
      // Calls that wait for a place are stopped while they wait.
      strictEqual((await runPlan(h.runtime, plan, stop.signal)).status, "killed");
      clearTimeout(timer);
      return containerName(plan.callId);
    }));
    const remaining = () =>
      [...Deno.readDirSync("/proc")].filter(({ name }) =>
        /^\d+$/.test(name) && names.some((call) => hasText(`/proc/${name}/cmdline`, call))
      );
    await eventually(20, () => Promise.resolve(remaining().length === 0));
  },
);

containerTest(
  "sweep() removes what an earlier life left, and nothing of another home",
  async (h) => {
    const owner = await ownerOf(h);
    const other = await startOrphan(h, "hang", 60);
    const mine = podman([
      ...[
        "create",
        "--pull=never",
        `--label=${OWNER_LABEL}=${owner}`,
        `--name=bx-left-${Deno.pid}`,
      ],
      `localhost/boxmaker/toolkit@sha256:${h.image.digest}`,
    ]);
    strictEqual((await mine).code, 0);
    try {
      const port = denoProcesses({
        path: "/usr/bin/podman",
        environment: podmanEnvironment(testFolders()),
        folder: testFolders().store,
      });
      const swept = await podmanOver(port, systemClock, "runc").sweep(owner);
      deepStrictEqual(swept, { ok: true, value: 1 });
      strictEqual(await isGone(`bx-left-${Deno.pid}`), true);
      strictEqual(await isGone(other.name), false);
    } finally {
      await other.kill();
      await eventually(20, () => isGone(other.name));
    }
  },
);

/** The label value of a house, as its containers carry it. */
async function ownerOf(h: ContainerHouseForTests): Promise<string> {
  const plan = planFor(h.image, "misbehave", { what: "secret" });
  const running = runPlan(h.runtime, plan);
  let label = "";
  await eventually(20, async () => {
    const format = `{{index .Config.Labels "${OWNER_LABEL}"}}`;
    label = (await podman(["inspect", "--format", format, containerName(plan.callId)])).stdout;
    return label.trim() !== "";
  });
  await running;
  const left = async () =>
    await podman(["ps", "-aq", "--filter", `label=${OWNER_LABEL}=${label.trim()}`]);
  await eventually(20, async () => (await left()).stdout.trim() === "");
  return label.trim();
}

function hasText(path: string, text: string): boolean {
  try {
    return new TextDecoder("latin1").decode(Deno.readFileSync(path)).includes(text);
  } catch {
    // Sockets, files of other ids and files that are gone by now hold nothing for this user.
    return false;
  }
}

containerTest(
  "container a secret is in no command line, inspection, database or log",
  async (h) => {
    const canary = "CANARY-7f3a";
    const folders = testFolders();
    const plan = planFor(h.image, "misbehave", { what: "secret" }, {
      secretsJson: `{"key":"${canary}"}`,
    });
    const running = runPlan(h.runtime, plan);
    await eventually(20, async () => !await isGone(containerName(plan.callId)));
    const inspected = await podman(["inspect", containerName(plan.callId)]);
    isTrue(inspected.stdout.includes(plan.callId) && !inspected.stdout.includes(canary));
    for (const entry of Deno.readDirSync("/proc")) {
      if (!/^\d+$/.test(entry.name)) continue;
      for (const file of ["cmdline", "environ"]) {
        const isOurs = Number(entry.name) === Deno.pid;
        isTrue(isOurs || !hasText(`/proc/${entry.name}/${file}`, canary), `${entry.name}/${file}`);
      }
    }
    const ran = await running;
    deepStrictEqual([ran.status, ran.text], ["ok", '["key"]']);
    // As the user of the maps, so that nothing is closed; the image's own layers hold no call.
    // A file that goes away while grep reads is an error of grep's, and is looked for again.
    let found = { code: 2, stdout: "", stderr: "" };
    for (let i = 0; i < 20 && found.code === 2 && found.stdout === ""; i++) {
      found = await podman([
        ...["unshare", "grep", "-rlaF", "-D", "skip", "--exclude-dir=overlay"],
        ...[canary, folders.store, folders.run],
      ]);
    }
    deepStrictEqual([found.code, found.stdout], [1, ""], found.stderr);
  },
);

containerTest(
  "container nobody's configuration or environment gets into a tool",
  async (h) => {
    const { store } = testFolders();
    const planted = `${store}/.config/containers`;
    await Deno.mkdir(planted, { recursive: true });
    const before = Deno.env.get("HTTP_PROXY");
    try {
      await Deno.writeTextFile(
        `${planted}/containers.conf`,
        '[containers]\nenv = ["PLANTED=1"]\nvolumes = ["/etc:/planted:ro"]\n',
      );
      await Deno.writeTextFile(`${planted}/mounts.conf`, "/etc:/planted\n");
      Deno.env.set("HTTP_PROXY", "http://user:password@127.0.0.1:1");
      Deno.env.set("CONTAINERS_CONF", `${planted}/containers.conf`);
      // The probe of a new runtime asserts environment and mounts to be ours alone.
      const again = await openTestHouse("planted");
      deepStrictEqual(again.runtime.status().state, "ready");
      const ran = await runPlan(again.runtime, planFor(h.image, "misbehave", { what: "denied" }));
      strictEqual(ran.status, "ok");
    } finally {
      if (before === undefined) Deno.env.delete("HTTP_PROXY");
      Deno.env.delete("CONTAINERS_CONF");
      await Deno.remove(planted, { recursive: true });
    }
  },
);

/** Everything in the store and the runtime folder but the image's own files and Deno's cache. */
async function footprint(): Promise<ReadonlySet<string>> {
  const { store, run } = testFolders();
  const pruned = ["(", "-path", "*/diff*/*", "-o", "-path", "*/.cache", ")", "-prune"];
  const found = await podman(["unshare", "find", store, run, ...pruned, "-o", "-print"]);
  const volumes = await podman(["volume", "ls", "-q"]);
  return new Set([...found.stdout.split("\n"), ...volumes.stdout.split("\n")]);
}

/** BOXMAKER_TEST_FULL=1 makes five hundred. */
const MANY = Deno.env.get("BOXMAKER_TEST_FULL") === "1" ? 500 : 50;

containerTest(
  `container ${MANY} calls, twenty at once, all succeed and leave nothing behind`,
  async (h) => {
    const runtime = openRuntime({
      home: `/twenty-home-${Deno.pid}`,
      podman: "/usr/bin/podman",
      folders: testFolders(),
      image: h.image.folder,
      source: ROOT.replace(/\/$/, ""),
      deno: Deno.execPath(),
    }, { clock: systemClock, random: systemRandom, disk: denoDisk });
    strictEqual((await runtime.ready()).state, "ready");
    await inGrantFolder(async (folder) => {
      await Deno.writeTextFile(`${folder}/a`, "text");
      const call = (index: number) => {
        const mounts = index % 2 === 0 ? [{ hostPath: `${folder}/a`, write: false }] : [];
        const plan = mounts.length > 0
          ? planFor(h.image, "read_file", { path: "/grant/0" }, { mounts })
          : planFor(h.image, "misbehave", { what: "denied" });
        return runPlan(runtime, plan);
      };
      await Promise.all([call(0), call(1)]);
      const before = await footprint();
      let next = 0;
      await Promise.all(Array.from({ length: 20 }, async () => {
        while (next < MANY) strictEqual((await call(next++)).status, "ok");
      }));
      // Other tests may use the store at the same time; what they have there comes and goes.
      await eventually(30, async () => before.isSupersetOf(await footprint()));
    });
  },
);

/** Changes one byte of a tool in a folder of the store, opens the house, and puts the byte back. */
async function withTampered(
  image: TestImage,
  folder: string,
  work: (status: string) => void,
): Promise<void> {
  const path = `${folder}/tk/read_file.js`;
  const script = 'f=$1; printf "%s" "$2" | dd of="$f" bs=1 seek=3 conv=notrunc status=none';
  const change = (text: string) => podman(["unshare", "sh", "-c", script, "sh", path, text]);
  const original =
    (await podman(["unshare", "dd", `if=${path}`, "bs=1", "skip=3", "count=1"])).stdout;
  strictEqual((await change(original === "X" ? "Y" : "X")).code, 0);
  try {
    const runtime = openRuntime({
      home: `/tampered-home-${Deno.pid}`,
      podman: "/usr/bin/podman",
      folders: testFolders(),
      image: image.folder,
      source: ROOT.replace(/\/$/, ""),
      deno: Deno.execPath(),
    }, { clock: systemClock, random: systemRandom, disk: denoDisk });
    const status = await runtime.ready();
    work(status.state === "refusing" ? status.code : status.state);
  } finally {
    strictEqual((await change(original)).code, 0);
  }
}

containerTest(
  "image check one byte changed in the base or in a copy, and nothing runs",
  async (h) => {
    const { store } = testFolders();
    const names = JSON.parse(await Deno.readTextFile(`${h.image.folder}/image.json`));
    const list = await Deno.readTextFile(`${store}/storage/overlay-images/images.json`);
    const folders = layerFolders(list, names.id, `${store}/storage`);
    if (!folders.ok) throw new Error(folders.detail);
    deepStrictEqual(folders.value.map(({ what }) => what), ["base", "copy", "copy"]);
    for (const { path } of folders.value.slice(0, 2)) {
      await withTampered(h.image, path, (status) => strictEqual(status, "image-changed", path));
    }
    const healthy = await openTestHouse("healthy");
    strictEqual(healthy.runtime.status().state, "ready");
  },
);
