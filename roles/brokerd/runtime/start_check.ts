// Everything that must hold before the first call: folders and configuration of our own, no container
// left from before, a host that can build the walls, the very image that was built, and a probe that
// looks at the walls from the inside, under both user maps.
import type { Clock } from "../../../shared/clock/clock.ts";
import type { Random } from "../../../shared/clock/random.ts";
import type { Disk } from "../../../shared/disk/disk.ts";
import { ulid } from "../../../shared/ids/ids.ts";
import { readText } from "../../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { INTERRUPTED, type PodmanFolders, REPAIR } from "../../../shared/podman/podman_env.ts";
import { type ContainerHouse, containerName, probeArgv } from "./argv.ts";
import { callLine } from "./call_line.ts";
import { podmanFailure } from "./failures.ts";
import { type HostFacts, hostFacts } from "./host_check.ts";
import { checkLayers, type LayerFolder, layerFolders, type StoreHasher } from "./image_check.ts";
import type { ImageFolder } from "./image_folder.ts";
import type { RunPlan, UserMap } from "./plan.ts";
import { type Podman, podmanOver } from "./podman.ts";
import { checkProbe, readProbe } from "./probe_check.ts";
import type { ProcessPort } from "./process.ts";
import { runCall } from "./run_call.ts";
import { emptyFolder, seccompFile } from "./store_folder.ts";

export interface TestedHouse {
  readonly podman: Podman;
  readonly house: ContainerHouse;
  readonly host: HostFacts;
}

export interface StartParts {
  readonly processes: ProcessPort;
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly folders: PodmanFolders;
  readonly owner: string;
  readonly hasher: StoreHasher;
}

const RUNTIMES = ["crun", "runc"] as const;
const MAX_LIST_BYTES = 16_777_216;
const PROBE_LIMITS = { timeout_s: 20, output_bytes: 65_536, memory_mb: 64, pids: 32 };

/** Tests the house from nothing. Any failure means that nothing runs. */
export async function checkStart(
  parts: StartParts,
  image: ImageFolder,
): Promise<Result<TestedHouse>> {
  const first = podmanOver(parts.processes, parts.clock, "runc");
  const swept = await firstSweep(first, parts.owner);
  if (!swept.ok) return swept;
  const [found, before] = await Promise.all([lookAtHost(parts), checkImage(parts, first, image)]);
  if (!found.ok) return found;
  if (!before.ok) return before;
  const tested = await probeRuntimes(parts, image, found.value);
  if (!tested.ok) return tested;
  const after = copiesOf(parts, image);
  if (!after.ok) return after;
  // A map's first container makes the copy that all its later ones run.
  if (after.value.length === before.value) return tested;
  const again = await checkImage(parts, first, image);
  return again.ok ? tested : again;
}

/** The same of one more image, in a house that was tested. */
export async function checkFurther(
  parts: StartParts,
  house: TestedHouse,
  image: ImageFolder,
): Promise<Result<null>> {
  const before = await checkImage(parts, house.podman, image);
  if (!before.ok) return before;
  const probed = await probeMaps(parts, house, image);
  if (!probed.ok) return probed;
  const after = await checkImage(parts, house.podman, image);
  return after.ok ? ok(null) : after;
}

/**
 * The sweep that also picks Podman up again: when the host went down during a call, its runtime folder
 * still names processes that are gone, and it refuses everything until its own repair has run.
 */
async function firstSweep(podman: Podman, owner: string): Promise<Result<number>> {
  const swept = await podman.sweep(owner);
  if (swept.ok || !INTERRUPTED.test(swept.detail)) return swept;
  const repaired = await podman.ask(REPAIR);
  return repaired.ok ? await podman.sweep(owner) : repaired;
}

interface FoundHost {
  readonly host: HostFacts;
  /** The runtimes to try, the first one present and what follows it. */
  readonly runtimes: readonly ("crun" | "runc")[];
}

/** Asks Podman about the host with each runtime in turn; one that is not installed answers nothing. */
async function lookAtHost(parts: StartParts): Promise<Result<FoundHost>> {
  let last: Result<FoundHost> = err("runtime-unavailable", "There is no container runtime");
  for (const [index, runtime] of RUNTIMES.entries()) {
    const podman = podmanOver(parts.processes, parts.clock, runtime);
    const info = await podman.ask(["info", "--format", "json"]);
    if (!info.ok) return info;
    const { status, stdout, stderr } = info.value;
    if (status === 0) {
      const host = hostFacts(stdout);
      return host.ok ? ok({ host: host.value, runtimes: RUNTIMES.slice(index) }) : host;
    }
    last = podmanFailure(status, stderr);
  }
  return last;
}

/**
 * Where the image lies in the store, by the store's own list and without starting Podman. Fails with
 * `image-missing`.
 */
export function copiesOf(
  parts: Pick<StartParts, "disk" | "folders">,
  image: ImageFolder,
): Result<readonly LayerFolder[]> {
  const storage = `${parts.folders.store}/storage`;
  const list = readText(parts.disk, `${storage}/overlay-images/images.json`, MAX_LIST_BYTES);
  return list.ok
    ? layerFolders(list.value, image.names.id, storage)
    : err("image-missing", `The store ${parts.folders.store} holds no image`);
}

async function checkImage(
  parts: StartParts,
  podman: Podman,
  image: ImageFolder,
): Promise<Result<number>> {
  const folders = copiesOf(parts, image);
  if (!folders.ok) return folders;
  const storage = `${parts.folders.store}/storage`;
  const checked = await checkLayers(podman, parts.hasher, storage, folders.value, image.files);
  return checked.ok ? ok(folders.value.length) : checked;
}

async function probeRuntimes(
  parts: StartParts,
  image: ImageFolder,
  { host, runtimes }: FoundHost,
): Promise<Result<TestedHouse>> {
  let last: Result<TestedHouse> = err("runtime-unavailable", "There is no container runtime");
  for (const runtime of runtimes) {
    const house: ContainerHouse = {
      runtime,
      owner: parts.owner,
      seccompFile: seccompFile(parts.folders),
      cgroupLimits: host.cgroupLimits,
    };
    const podman = podmanOver(parts.processes, parts.clock, runtime);
    last = await probeMaps(parts, { podman, house, host }, image);
    // A wall that is missing is the answer; another runtime would only hide it.
    if (last.ok || last.code === "runtime-unsafe") return last;
  }
  return last;
}

async function probeMaps(
  parts: StartParts,
  tested: TestedHouse,
  image: ImageFolder,
): Promise<Result<TestedHouse>> {
  const probed = await Promise.all([
    probe(parts, tested, image, "blind"),
    probe(parts, tested, image, "owner"),
  ]);
  for (const one of probed) if (!one.ok) return one;
  return ok(tested);
}

async function probe(
  parts: StartParts,
  tested: TestedHouse,
  image: ImageFolder,
  map: UserMap,
): Promise<Result<null>> {
  const plan: RunPlan = {
    callId: `c-${ulid(parts.clock.nowUnixMs(), parts.random)}`,
    tool: "probe",
    image: image.names.digest,
    argsJson: "{}",
    secretsJson: null,
    mounts: map === "owner" ? [{ hostPath: emptyFolder(parts.folders), write: false }] : [],
    map,
    limits: PROBE_LIMITS,
    egressFolder: null,
    flags: [],
  };
  const pieces: number[] = [];
  const outcome = await runCall(
    {
      name: containerName(plan.callId),
      argv: probeArgv(plan, tested.house),
      line: callLine("{}", "{}"),
    },
    plan,
    { onOutput: (bytes) => pieces.push(...bytes), signal: new AbortController().signal },
    { podman: tested.podman, clock: parts.clock },
  );
  if (outcome.status === "could_not_start") {
    return err(outcome.code ?? "container-not-started", outcome.log);
  }
  if (outcome.status !== "ok") {
    return err(
      "runtime-unavailable",
      `The probe did not end well: ${outcome.message} ${outcome.log}`,
    );
  }
  const seen = readProbe(Uint8Array.from(pieces));
  return seen.ok ? checkProbe(seen.value, plan.mounts.map((_mount, i) => `/grant/${i}`)) : seen;
}
