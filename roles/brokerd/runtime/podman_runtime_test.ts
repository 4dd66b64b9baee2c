// Guards the runtime's beginning: whatever is missing, every call is refused by name and nothing breaks.
import { deepStrictEqual, strictEqual } from "node:assert";
import { systemClock } from "../../../shared/clock/clock.ts";
import { seededRandom } from "../../../shared/clock/random.ts";
import { denoDisk } from "../../../shared/disk/deno_disk.ts";
import { err } from "../../../shared/results/result.ts";
import { encodeCanonical } from "../../../shared/wire/codec.ts";
import { sha256Hex } from "../../../shared/tool/digest.ts";
import type { RunPlan } from "./plan.ts";
import { openPodmanRuntime } from "./podman_runtime.ts";

const PLAN: RunPlan = {
  callId: "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
  tool: "look",
  image: "0".repeat(64),
  argsJson: "{}",
  secretsJson: null,
  mounts: [],
  map: "blind",
  limits: { timeout_s: 5, output_bytes: 10, memory_mb: 64, pids: 32 },
  egressFolder: null,
  flags: [],
};
const IO = { onOutput: () => {}, signal: new AbortController().signal };

async function inHome(work: (home: string) => Promise<void>): Promise<void> {
  const home = Deno.makeTempDirSync({ prefix: "bx-rt-" });
  try {
    await work(home);
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
}

/** A runtime whose Podman cannot be started. */
function without(home: string) {
  return openPodmanRuntime({
    processes: { spawn: () => err("runtime-unavailable", "Cannot start /usr/bin/podman") },
    clock: systemClock,
    random: seededRandom(1),
    disk: denoDisk,
    folders: { store: `${home}/s`, run: `${home}/r` },
    owner: "abc",
    hasher: { deno: "/deno", program: "/hash" },
    image: `${home}/image`,
    furtherImages: [],
  });
}

function writeImageFolder(home: string): void {
  Deno.mkdirSync(`${home}/image`);
  const files = encodeCanonical([{ path: "bin", type: "folder", mode: 0o755 }]);
  const none = "0".repeat(64);
  const names = {
    v: 1,
    digest: none,
    id: none,
    catalog: none,
    files: sha256Hex(files),
    built_from: { deno: "1", libraries: {} },
  };
  Deno.mkdirSync(`${home}/s/storage/overlay-images`, { recursive: true, mode: 0o700 });
  Deno.writeTextFileSync(
    `${home}/s/storage/overlay-images/images.json`,
    JSON.stringify([{ id: none, layer: none }]),
  );
  Deno.writeFileSync(`${home}/image/files.json`, files);
  Deno.writeFileSync(`${home}/image/image.json`, encodeCanonical(names));
}

Deno.test("openPodmanRuntime() without a built image every call is refused as image-missing", async () => {
  await inHome(async (home) => {
    const runtime = without(home);
    const run = await runtime.run(PLAN, IO);
    strictEqual(!run.ok && run.code, "image-missing");
    deepStrictEqual(runtime.status().state, "refusing");
  });
});

Deno.test("openPodmanRuntime() a file list that is not the image's own is refused", async () => {
  await inHome(async (home) => {
    writeImageFolder(home);
    Deno.writeTextFileSync(`${home}/image/files.json`, '[{"path":"x","type":"folder","mode":493}]');
    const run = await without(home).run(PLAN, IO);
    strictEqual(!run.ok && run.code, "image-changed");
  });
});

Deno.test("openPodmanRuntime() a store without the image is refused and left alone", async () => {
  await inHome(async (home) => {
    writeImageFolder(home);
    Deno.removeSync(`${home}/s`, { recursive: true });
    const run = await without(home).run(PLAN, IO);
    strictEqual(!run.ok && run.code, "image-missing");
    deepStrictEqual([...Deno.readDirSync(home)].map((entry) => entry.name), ["image"]);
  });
});

Deno.test("openPodmanRuntime() without Podman, or as root, every call is refused", async () => {
  await inHome(async (home) => {
    writeImageFolder(home);
    const runtime = without(home);
    const run = await runtime.run(PLAN, IO);
    await runtime.killAll();
    strictEqual(!run.ok && run.code, "runtime-unavailable");
  });
});
