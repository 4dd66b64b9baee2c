// Real containers for tests: one store for all of them, and a test image that is the product image and a
// few programs more. Building and loading happen once; a damaged store is put right.
import { buildImage, hostSources, writeImage } from "../../deploy/image/build.ts";
import type { Extra } from "../../deploy/image/contents.ts";
import { loadImage } from "../../deploy/image/load.ts";
import { file, type TreeEntry } from "../../deploy/image/tree.ts";
import { toolFlags } from "../../roles/brokerd/runtime/argv.ts";
import { openRuntime, type RuntimePlace } from "../../roles/brokerd/runtime/open_runtime.ts";
import type { Mount, RunOutcome, RunPlan } from "../../roles/brokerd/runtime/plan.ts";
import type { PodmanRuntime } from "../../roles/brokerd/runtime/podman_runtime.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { ulid } from "../../shared/ids/ids.ts";
import {
  podmanEnvironment,
  type PodmanFolders,
  runFolderOf,
} from "../../shared/podman/podman_env.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import type { Result } from "../../shared/results/result.ts";
import { escapeProgram } from "./escape_program.ts";

const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
export const PODMAN = "/usr/bin/podman";

/** Why no container can be started by these tests, or null. */
export const NO_CONTAINERS: string | null = !isThere(PODMAN)
  ? "Podman is not installed"
  : Deno.uid() === 0
  ? "needs an ordinary user with subordinate ids"
  : null;

function isThere(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/** The store that all tests share. */
export function testFolders(): PodmanFolders {
  const store = Deno.env.get("BOXMAKER_TEST_STORE") ??
    `${Deno.env.get("HOME") ?? "/tmp"}/.cache/boxmaker/podman`;
  return { store, run: runFolderOf(store) };
}

const MISBEHAVE: Manifest = {
  name: "misbehave",
  description: "Does what no tool should, for tests.",
  parameters: {
    type: "object",
    properties: {
      what: { type: "string", description: "Which", maxLength: 100 },
      path: { type: "string", description: "Where", maxLength: 1_000 },
    },
    required: ["what"],
    additionalProperties: false,
  },
  paths: [],
  effect: "local",
  network: false,
  scratch: true,
  env: [],
  limits: { timeout_s: 10, output_bytes: 65_536, memory_mb: 64, pids: 32 },
  summarise: false,
};

export interface TestImage {
  readonly folder: string;
  readonly digest: string;
  /** Whether the C program that tries system calls is in it. */
  readonly hasEscape: boolean;
}

/** Builds the test image and loads it into a store, the shared one unless another is given. */
export async function testImage(folders: PodmanFolders = testFolders()): Promise<TestImage> {
  const escape = await escapeProgram();
  const files: TreeEntry[] = escape === null ? [] : [file("bin/escape", escape, 0o755)];
  const extra: Extra = {
    programs: [
      { name: "misbehave", main: "tests/e2e/in_container/misbehave.ts" },
      { name: "inside", main: "tests/e2e/in_container/inside.ts" },
    ],
    manifests: [MISBEHAVE],
    files,
  };
  const image = buildImage(hostSources(ROOT), extra, Deno.version.deno);
  const folder = `${folders.store}-test-image`;
  await writeImage(image, folder);
  const { digest } = image.names;
  await loadImage({ image: folder, digest, podman: PODMAN, ...folders });
  return { folder, digest, hasEscape: escape !== null };
}

export interface ContainerHouseForTests {
  readonly runtime: PodmanRuntime;
  readonly place: RuntimePlace;
  readonly image: TestImage;
}

/** Opens the real runtime on the test image; a stored image that was damaged is loaded anew. */
export async function openTestHouse(
  name = "test",
  folders: PodmanFolders = testFolders(),
): Promise<ContainerHouseForTests> {
  // Its own label a process, so that no two runs of the tests sweep each other's containers.
  const home = `/${name}-home-${Deno.pid}`;
  const image = await testImage(folders);
  const place: RuntimePlace = {
    home,
    podman: PODMAN,
    folders,
    image: image.folder,
    source: ROOT,
    deno: Deno.execPath(),
  };
  const ports = { clock: systemClock, random: systemRandom, disk: denoDisk };
  const runtime = openRuntime(place, ports);
  const status = await runtime.ready();
  if (status.state === "refusing" && status.code === "image-changed") {
    await podman(["rmi", "-f", `localhost/boxmaker/toolkit@sha256:${image.digest}`], folders);
    return openTestHouse(name, folders);
  }
  return { runtime, place, image };
}

export interface PodmanAnswer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Podman as brokerd runs it, for looking from the outside. */
export async function podman(
  args: readonly string[],
  folders: PodmanFolders = testFolders(),
): Promise<PodmanAnswer> {
  const { code, stdout, stderr } = await new Deno.Command(PODMAN, {
    args: ["--log-level=error", ...args],
    clearEnv: true,
    env: podmanEnvironment(folders),
    cwd: folders.store,
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

/** A plan for a tool of the test image. */
export function planFor(
  image: TestImage,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  more: Partial<RunPlan> & { readonly mounts?: readonly Mount[] } = {},
): RunPlan {
  const mounts = more.mounts ?? [];
  return {
    callId: `c-${ulid(Date.now(), systemRandom)}`,
    tool,
    image: image.digest,
    argsJson: JSON.stringify(args),
    secretsJson: null,
    mounts,
    map: mounts.length > 0 ? "owner" : "blind",
    limits: MISBEHAVE.limits,
    egressFolder: null,
    flags: toolFlags(MISBEHAVE, mounts),
    ...more,
  };
}

export interface Ran {
  readonly run: Result<RunOutcome>;
  /** The outcome's status, or the code when the runtime refused. */
  readonly status: string;
  readonly message: string;
  readonly text: string;
}

/** Runs a plan to its end and gathers what came. */
export async function runPlan(
  runtime: PodmanRuntime,
  plan: RunPlan,
  signal: AbortSignal = new AbortController().signal,
): Promise<Ran> {
  const pieces: Uint8Array[] = [];
  const run = await runtime.run(plan, { onOutput: (bytes) => pieces.push(bytes.slice()), signal });
  const text = await new Blob(pieces.map((piece) => Uint8Array.from(piece))).text();
  return run.ok
    ? { run, status: run.value.status, message: run.value.message, text }
    : { run, status: run.code, message: run.detail, text };
}

let opened: Promise<ContainerHouseForTests> | null = null;

/** A test with real containers; skipped by name where none can be started. */
export function containerTest(
  name: string,
  work: (house: ContainerHouseForTests) => Promise<void>,
): void {
  Deno.test({
    name: NO_CONTAINERS === null ? name : `${name} (skipped: ${NO_CONTAINERS})`,
    ignore: NO_CONTAINERS !== null,
    fn: async () => {
      opened ??= openTestHouse();
      await work(await opened);
    },
  });
}

/** A fresh folder to grant, by its real path; removed afterwards. */
export async function inGrantFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "bx-grant-" }));
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
