// The runtime that brokerd uses: it tests the house once, then runs calls, and can end them all. Until the
// test has passed it runs nothing; after it has failed it says why for ever. How many calls run at once
// is decided by who asks (calls.ts).
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { prepareCall } from "./call_line.ts";
import { readImageFolder } from "./image_folder.ts";
import type { RunIo, RunOutcome, RunPlan, Runtime, RuntimeStatus } from "./plan.ts";
import { runCall } from "./run_call.ts";
import {
  checkFurther,
  checkStart,
  copiesOf,
  type StartParts,
  type TestedHouse,
} from "./start_check.ts";
import { prepareFolders } from "./store_folder.ts";

interface PodmanRuntimeParts extends StartParts {
  /** Folder of the built image. */
  readonly image: string;
  /** Folders of further images; one that is not as built is not run, and the others are. */
  readonly furtherImages: readonly string[];
}

export interface PodmanRuntime extends Runtime {
  /** Settles when the self-test has ended, either way. */
  ready(): Promise<RuntimeStatus>;
}

/** Begins the self-test and returns at once. */
export function openPodmanRuntime(parts: PodmanRuntimeParts): PodmanRuntime {
  const running = new Map<string, { stop: AbortController; over: Promise<void> }>();
  let status: RuntimeStatus = { state: "starting" };
  const tested = begin(parts).then((result) => {
    status = result.ok
      ? { state: "ready", facts: factsOf(result.value.house) }
      : { state: "refusing", code: result.code, detail: result.detail };
    return result;
  });

  async function run(plan: RunPlan, io: RunIo): Promise<Result<RunOutcome>> {
    const house = await tested;
    if (!house.ok) return house;
    const { callId } = plan;
    const image = house.value.images.get(plan.image);
    if (image === undefined) {
      return err("image-missing", `No image ${plan.image} was found at start`);
    }
    if (!image.ok) return image;
    if (running.has(callId)) return err("call-already-started", `The call ${callId} is running`);
    const stop = new AbortController();
    const over = Promise.withResolvers<void>();
    running.set(callId, { stop, over: over.promise });
    const signal = AbortSignal.any([io.signal, stop.signal]);
    try {
      const call = prepareCall(plan, house.value.house.house, parts.disk);
      if (!call.ok) return call;
      const podman = house.value.house.podman;
      return ok(await runCall(call.value, plan, { ...io, signal }, { podman, clock: parts.clock }));
    } finally {
      running.delete(callId);
      over.resolve();
    }
  }

  return {
    status: () => status,
    ready: async () => {
      await tested;
      return status;
    },
    run,
    async killAll() {
      const all = [...running.values()];
      for (const { stop } of all) stop.abort();
      await Promise.all(all.map(({ over }) => over));
    },
  };
}

interface Begun {
  readonly house: TestedHouse;
  /** Every image that was looked at, by digest: whether it may be run. */
  readonly images: ReadonlyMap<string, Result<null>>;
}

async function begin(parts: PodmanRuntimeParts): Promise<Result<Begun>> {
  const image = readImageFolder(parts.disk, parts.image);
  if (!image.ok) return image;
  // A store without the image stays untouched: there is nothing to test in it.
  const stored = copiesOf(parts, image.value);
  if (!stored.ok) return stored;
  const folders = prepareFolders(parts.disk, parts.folders);
  if (!folders.ok) return folders;
  const house = await checkStart(parts, image.value);
  if (!house.ok) return house;
  const images = new Map<string, Result<null>>([[image.value.names.digest, ok(null)]]);
  for (const folder of parts.furtherImages) {
    const further = readImageFolder(parts.disk, folder);
    if (!further.ok) continue;
    const { digest } = further.value.names;
    if (!images.has(digest)) {
      images.set(digest, await checkFurther(parts, house.value, further.value));
    }
  }
  return ok({ house: house.value, images });
}

function factsOf({ host, house }: TestedHouse) {
  const limits = host.cgroupLimits.size > 0 ? "cgroup" as const : "process" as const;
  return { podman: host.podman, runtime: house.runtime, limits };
}
