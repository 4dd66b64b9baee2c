// Podman's two folders as brokerd makes and checks them, and the files that it keeps beside the store:
// Podman's configuration, the system call profile, and an empty folder for the probe to be given.
import type { Disk } from "../../../shared/disk/disk.ts";
import { attempt, readText, replaceFile } from "../../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { encodeUtf8 } from "../../../shared/wire/codec.ts";
import {
  MAX_RUN_BYTES,
  podmanFiles,
  type PodmanFolders,
} from "../../../shared/podman/podman_env.ts";
import { seccompProfile } from "./seccomp.ts";

const MAX_FILE_BYTES = 262_144;

/** Where the system call profile lies. */
export function seccompFile(folders: PodmanFolders): string {
  return `${folders.store}/seccomp.json`;
}

/** A folder of brokerd's own that holds nothing. */
export function emptyFolder(folders: PodmanFolders): string {
  return `${folders.store}/empty`;
}

/**
 * Makes the folders and files, or checks those that are there. Fails with `runtime-unavailable` when
 * the user is root or a folder is open to others, and with `runtime-moved` for a path too long.
 */
export function prepareFolders(disk: Disk, folders: PodmanFolders): Result<null> {
  if (encodeUtf8(folders.run).length > MAX_RUN_BYTES) {
    return err(
      "runtime-moved",
      `Podman's runtime folder has over ${MAX_RUN_BYTES} bytes: ${folders.run}`,
    );
  }
  // A role is given these folders and not the ones above them, so they are made one by one; nothing in
  // them needs to be durable, as the image can be loaded again.
  for (const folder of [folders.store, folders.run, emptyFolder(folders)]) {
    const there = attempt(() => disk.lstat(folder));
    const made = there.ok ? there : attempt(() => disk.mkdir(folder));
    if (!made.ok) return made;
  }
  const owner = attempt(() => disk.lstat(emptyFolder(folders)).ownerUid);
  if (!owner.ok) return owner;
  if (owner.value === 0) {
    return err("runtime-unavailable", "Containers are started by an ordinary user, never by root");
  }
  for (const folder of [folders.store, folders.run]) {
    const problem = openness(disk, folder, owner.value);
    if (problem !== null) return err("runtime-unavailable", problem);
  }
  return writeFiles(disk, folders);
}

function openness(disk: Disk, folder: string, owner: number): string | null {
  const facts = attempt(() => disk.lstat(folder));
  if (!facts.ok) return facts.detail;
  const { kind, mode, ownerUid } = facts.value;
  if (kind !== "folder") return `${folder} is a ${kind}, not a folder`;
  if (ownerUid !== owner) return `${folder} belongs to another user`;
  return (mode & 0o066) === 0 ? null : `${folder} is open to other users`;
}

function writeFiles(disk: Disk, folders: PodmanFolders): Result<null> {
  const files = [...podmanFiles(folders), { path: seccompFile(folders), text: seccompProfile() }];
  for (const { path, text } of files) {
    const present = readText(disk, path, MAX_FILE_BYTES);
    if (present.ok && present.value === text) continue;
    const written = replaceFile(disk, path, encodeUtf8(text));
    if (!written.ok) return written;
  }
  return ok(null);
}
