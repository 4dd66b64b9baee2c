// Puts the runtime together from a house's paths: what brokerd's main.ts calls, and what the tests call
// to get the very same thing.
import type { Clock } from "../../../shared/clock/clock.ts";
import type { Random } from "../../../shared/clock/random.ts";
import type { Disk } from "../../../shared/disk/disk.ts";
import { podmanEnvironment, type PodmanFolders } from "../../../shared/podman/podman_env.ts";
import { sha256Hex } from "../../../shared/tool/digest.ts";
import { encodeUtf8 } from "../../../shared/wire/codec.ts";
import { denoProcesses } from "./deno_process.ts";
import { openPodmanRuntime, type PodmanRuntime } from "./podman_runtime.ts";

export interface RuntimePlace {
  /** The home: its containers carry a label made from it, and the sweep goes by that label. */
  readonly home: string;
  /** Absolute path of Podman. */
  readonly podman: string;
  readonly folders: PodmanFolders;
  /** Folder of the built image. */
  readonly image: string;
  /** Folders of further built images. */
  readonly furtherImages?: readonly string[];
  /** The source folder, for the program that hashes the store. */
  readonly source: string;
  /** Absolute path of Deno on the host. */
  readonly deno: string;
}

type RuntimePorts = { readonly clock: Clock; readonly random: Random; readonly disk: Disk };

/** Begins testing the runtime of a house and returns at once. */
export function openRuntime(place: RuntimePlace, ports: RuntimePorts): PodmanRuntime {
  return openPodmanRuntime({
    ...ports,
    processes: denoProcesses({
      path: place.podman,
      environment: podmanEnvironment(place.folders),
      folder: place.folders.store,
    }),
    folders: place.folders,
    owner: sha256Hex(encodeUtf8(place.home)).slice(0, 16),
    hasher: {
      deno: place.deno,
      program: `${place.source}/roles/brokerd/runtime/store_hash/main.ts`,
    },
    image: place.image,
    furtherImages: place.furtherImages ?? [],
  });
}
