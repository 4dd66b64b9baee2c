// The configuration Podman gets from us and nothing else: two files that we write beside its store and
// an environment of our own. The user's containers.conf, mounts.conf and variables take no part.
//
// The two folders are fixed for ever once used: Podman's database remembers them.

import { sha256Hex } from "../tool/digest.ts";
import { encodeUtf8 } from "../wire/codec.ts";

export interface PodmanFolders {
  /** Absolute folder of the store and of our configuration files, owned by the user, mode 0700. */
  readonly store: string;
  /** Absolute runtime folder, owned by the user, mode 0700. */
  readonly run: string;
}

/**
 * The folders of a house. The store lies directly below the home and not in brokerd's own folder,
 * because Podman makes every folder above a store passable (mode 0711) for the users of its maps.
 */
export function podmanFolders(
  home: string,
  configured: { readonly store?: string | undefined; readonly run?: string | undefined },
): PodmanFolders {
  const store = configured.store ?? `${home}/podman`;
  return { store, run: configured.run ?? runFolderOf(store) };
}

export interface ConfigurationFile {
  readonly path: string;
  readonly text: string;
}

/** What Podman says when its own helper process is gone, as after a restart of the host in a call. */
export const INTERRUPTED = /invalid internal status/;
/** The command that is Podman's own repair of that. */
export const REPAIR: readonly string[] = ["system", "migrate"];

/**
 * The longest runtime folder, in bytes. Podman's own clean-up after a container is given the folder
 * by a flag that takes 50 characters at most, and it adds a name of its own to it.
 */
export const MAX_RUN_BYTES = 39;

/**
 * The runtime folder that belongs to a store: beside it when that is short enough, else one in the
 * host's temporary folder under a name that the usual clean-up of that folder spares.
 */
export function runFolderOf(store: string): string {
  const beside = `${store}-run`;
  if (encodeUtf8(beside).length <= MAX_RUN_BYTES) return beside;
  return `/tmp/podman-run-bx-${sha256Hex(encodeUtf8(store)).slice(0, 16)}`;
}

/** The files Podman is told to read. */
export function podmanFiles(folders: PodmanFolders): readonly ConfigurationFile[] {
  const storage = quoted(`${folders.store}/storage`);
  return [
    {
      path: containersConf(folders),
      text: [
        "[containers]",
        'log_driver = "none"',
        "[engine]",
        'cgroup_manager = "cgroupfs"',
        'events_logger = "none"',
        'runtime = "runc"',
        'lock_type = "file"',
        "",
      ].join("\n"),
    },
    {
      path: storageConf(folders),
      text: [
        "[storage]",
        'driver = "overlay"',
        `graphroot = ${storage}`,
        `rootless_storage_path = ${storage}`,
        "",
      ].join("\n"),
    },
  ];
}

/** The whole environment of every podman process: constant names, no value from a request. */
export function podmanEnvironment(folders: PodmanFolders): Record<string, string> {
  return {
    HOME: folders.store,
    PATH: "/usr/bin:/bin",
    XDG_RUNTIME_DIR: folders.run,
    CONTAINERS_CONF: containersConf(folders),
    CONTAINERS_STORAGE_CONF: storageConf(folders),
    GOGC: "off",
  };
}

function containersConf(folders: PodmanFolders): string {
  return `${folders.store}/containers.conf`;
}

function storageConf(folders: PodmanFolders): string {
  return `${folders.store}/storage.conf`;
}

/** A TOML basic string. Throws on a path that no folder of ours may have. */
function quoted(path: string): string {
  if (!path.startsWith("/") || /["\\\p{C}]/u.test(path)) {
    throw new TypeError("A folder of Podman's must be a plain absolute path");
  }
  return `"${path}"`;
}
