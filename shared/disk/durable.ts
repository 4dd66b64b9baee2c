// The safe operations on files: append, create exclusive, create idempotent, replace, make folders,
// and bounded reads. Each has either happened and will survive a power cut, or returns a failure.
//
// 1. Content is synced before a name points at it, and the folder is synced before success.
// 2. A temporary file is `NAME.tmp` beside its target; a leftover of a crash is overwritten. Each
//    folder has one writer, so the name needs no chance in it.
// 3. `disk-failed` means a sync failed and the disk's state is unknown: the caller ends the process
//    (see `mustEnd`). Nothing here ever syncs the same file again after a failure.
import { type Disk, DiskError, type DiskFile, type DiskFolder } from "./disk.ts";
import { type Err, err, ok, type Result } from "../results/result.ts";
import { decodeUtf8 } from "../wire/codec.ts";

const TEMPORARY = ".tmp";
const ASIDE = ".aside";

/** Whether a listing should pass over this name as the leftover of an interrupted operation. */
export function isTemporaryName(name: string): boolean {
  return name.endsWith(TEMPORARY) || name.endsWith(ASIDE);
}

/** Whether a failure leaves the process no choice but to end, without answering anyone. */
export function mustEnd(failure: Err): boolean {
  return failure.code === "disk-failed";
}

/** The folder part of an absolute path. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

function failureOf(error: DiskError): Err {
  if (error.kind === "sync_failed") return err("disk-failed", error.message);
  if (error.kind === "no_space") return err("disk-full", error.message);
  if (error.kind === "not_found") return err("file-missing", error.message);
  if (error.kind === "already_exists") return err("file-exists", error.message);
  return err("disk-error", error.message);
}

/** Runs disk calls and turns a DiskError into its Result; anything else is a bug and is rethrown. */
export function attempt<T>(call: () => T): Result<T> {
  try {
    return ok(call());
  } catch (thrown) {
    if (thrown instanceof DiskError) return failureOf(thrown);
    throw thrown;
  }
}

/** Renames every failure to `sync_failed` so that no caller takes it for a refusal. */
function orEnd(call: () => void): void {
  try {
    call();
  } catch (thrown) {
    if (thrown instanceof DiskError) throw new DiskError("sync_failed", thrown.message);
    throw thrown;
  }
}

function syncOrEnd(target: DiskFile | DiskFolder): void {
  orEnd(() => target.sync());
}

function writeAll(file: DiskFile, bytes: Uint8Array): void {
  let rest = bytes;
  while (rest.length > 0) rest = rest.subarray(file.write(rest));
}

function removeIfThere(disk: Disk, path: string): void {
  try {
    disk.unlink(path);
  } catch (thrown) {
    if (thrown instanceof DiskError && thrown.kind === "not_found") return;
    throw thrown;
  }
}

/** After a failure the leftover is only untidy; the failure already being thrown matters more. */
function tidy(disk: Disk, path: string): void {
  try {
    removeIfThere(disk, path);
  } catch (thrown) {
    if (!(thrown instanceof DiskError)) throw thrown;
  }
}

function writeTemporary(disk: Disk, path: string, bytes: Uint8Array): void {
  removeIfThere(disk, path);
  const file = disk.open(path, "create_new");
  try {
    writeAll(file, bytes);
    syncOrEnd(file);
  } finally {
    file.close();
  }
}

function inFolder<T>(disk: Disk, path: string, change: () => T): T {
  const folder = disk.openFolder(parentOf(path));
  try {
    const value = change();
    syncOrEnd(folder);
    return value;
  } finally {
    folder.close();
  }
}

function viaTemporary(disk: Disk, path: string, bytes: Uint8Array, place: (from: string) => void) {
  const temporary = path + TEMPORARY;
  inFolder(disk, path, () => {
    try {
      writeTemporary(disk, temporary, bytes);
      place(temporary);
    } catch (thrown) {
      if (thrown instanceof DiskError) tidy(disk, temporary);
      throw thrown;
    }
  });
}

/** Puts `bytes` in place of whatever the path names, in one step. Old or new, never a mixture. */
export function replaceFile(disk: Disk, path: string, bytes: Uint8Array): Result<void> {
  return attempt(() => viaTemporary(disk, path, bytes, (from) => disk.rename(from, path)));
}

/**
 * As `replaceFile`, but only while the file is as `mayReplace` wants it; it is asked about the path it
 * is given. Whoever else saves the file meanwhile is never overwritten: the file is set aside, the new
 * one takes the name only when nobody else has, and what lies aside is looked at and comes back when
 * it was written to. A crash may leave it aside, where `returnAside` finds it.
 */
export function replaceFileIf(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  mayReplace: (path: string) => boolean,
): Result<"replaced" | "kept"> {
  const aside = path + ASIDE;
  const outcome = attempt(() => {
    let outcome: "replaced" | "kept" = "kept";
    viaTemporary(disk, path, bytes, (from) => {
      if (mayReplace(path)) {
        disk.rename(path, aside);
        orEnd(() => {
          // Nothing in between: for this moment the file has no name.
          if (!linkIfFree(disk, from, path)) return;
          if (mayReplace(aside)) outcome = "replaced";
          else disk.rename(aside, path);
        });
      }
      tidy(disk, from);
    });
    return outcome;
  });
  // Durable by now; what is left aside goes at the next start if not here.
  if (outcome.ok) tidy(disk, aside);
  return outcome;
}

function linkIfFree(disk: Disk, existing: string, fresh: string): boolean {
  try {
    disk.link(existing, fresh);
    return true;
  } catch (thrown) {
    if (thrown instanceof DiskError && thrown.kind === "already_exists") return false;
    throw thrown;
  }
}

/** Ends what a crash in `replaceFileIf` began: a file that lies aside gets its name back if it is free. */
export function returnAside(disk: Disk, path: string): Result<void> {
  const aside = path + ASIDE;
  return attempt(() =>
    inFolder(disk, path, () => {
      try {
        linkIfFree(disk, aside, path);
      } catch (thrown) {
        if (!(thrown instanceof DiskError && thrown.kind === "not_found")) throw thrown;
        return;
      }
      removeIfThere(disk, aside);
    })
  );
}

/**
 * Overwrites part of an existing file in place, durably. A crash may leave any mixture of old and new
 * bytes there, so only for content that says itself whether it is whole. Once writing has begun every
 * failure is `disk-failed`: nobody knows what the place holds.
 */
export function overwrite(disk: Disk, path: string, at: number, bytes: Uint8Array): Result<void> {
  return attempt(() => {
    const file = disk.open(path, "read_write");
    try {
      file.seek(at);
      orEnd(() => writeAll(file, bytes));
      syncOrEnd(file);
    } finally {
      file.close();
    }
  });
}

/** Makes a file that must not exist yet; fails with `file-exists` and leaves the other untouched. */
export function createExclusive(disk: Disk, path: string, bytes: Uint8Array): Result<void> {
  return attempt(() =>
    viaTemporary(disk, path, bytes, (from) => {
      disk.link(from, path);
      disk.unlink(from);
    })
  );
}

/** As `createExclusive`, but a file that holds exactly `bytes` already is a success. */
export function createIdempotent(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
): Result<"created" | "same"> {
  const made = createExclusive(disk, path, bytes);
  if (made.ok) return ok("created");
  if (made.code !== "file-exists") return made;
  const there = readWhole(disk, path, bytes.length);
  if (!there.ok) return there.code === "file-too-large" ? made : there;
  if (!there.value.every((byte, i) => byte === bytes[i])) return made;
  if (there.value.length !== bytes.length) return made;
  // The other maker may have died before its folder sync; success here promises durability too.
  const synced = attempt(() => inFolder(disk, path, () => {}));
  return synced.ok ? ok("same") : synced;
}

/** Gives a file another name in its folder, durably; whatever had that name is gone. */
export function moveFile(disk: Disk, from: string, to: string): Result<void> {
  return attempt(() => inFolder(disk, to, () => disk.rename(from, to)));
}

/** Removes a file durably; a file that is not there is a success. */
export function removeFile(disk: Disk, path: string): Result<void> {
  return attempt(() => inFolder(disk, path, () => removeIfThere(disk, path)));
}

/** Makes a folder and the missing ones above it, each durable; fails when a name is no folder. */
export function makeFolders(disk: Disk, path: string): Result<void> {
  return attempt(() => makeFolderChain(disk, path));
}

function makeFolderChain(disk: Disk, path: string): void {
  try {
    inFolder(disk, path, () => disk.mkdir(path));
  } catch (thrown) {
    if (!(thrown instanceof DiskError)) throw thrown;
    if (thrown.kind === "not_found" && path !== parentOf(path)) {
      makeFolderChain(disk, parentOf(path));
      inFolder(disk, path, () => disk.mkdir(path));
      return;
    }
    // A role may have been given a folder but not the one above it, so `denied` can mean it is there.
    const mayBeThere = thrown.kind === "already_exists" || thrown.kind === "denied";
    if (mayBeThere && disk.lstat(path).kind === "folder") return;
    throw thrown;
  }
}

/** The bytes of a file; fails with `file-too-large` above `maxBytes` before reserving memory. */
export function readWhole(disk: Disk, path: string, maxBytes: number): Result<Uint8Array> {
  const read = attempt(() => {
    const file = disk.open(path, "read");
    try {
      const { size, kind } = file.stat();
      if (kind !== "file") throw new DiskError("io", `Cannot read ${path} as it is no file`);
      return size > maxBytes ? size : readBytes(file, size);
    } finally {
      file.close();
    }
  });
  if (!read.ok) return read;
  if (typeof read.value !== "number") return ok(read.value);
  return err(
    "file-too-large",
    `Cannot read ${path} as it has ${read.value} bytes: limit ${maxBytes}`,
  );
}

/** Reads up to `length` bytes from the file's position; fewer only at its end. */
export function readBytes(file: DiskFile, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const got = file.read(bytes.subarray(filled));
    if (got === 0) break;
    filled += got;
  }
  return bytes.subarray(0, filled);
}

/** The text of a UTF-8 file, refused when it is not UTF-8 or longer than `maxBytes`. */
export function readText(disk: Disk, path: string, maxBytes: number): Result<string> {
  const bytes = readWhole(disk, path, maxBytes);
  return bytes.ok ? decodeUtf8(bytes.value) : bytes;
}

export interface Appender {
  /** Bytes of the file, all of them durable unless an append has failed with `disk-failed`. */
  size(): number;
  /** Writes at the end and syncs. On `disk-full` or `disk-error` the file is as it was before. */
  append(bytes: Uint8Array): Result<void>;
  /** Cuts the file to `size` bytes, at most what it has, and syncs; a failure is `disk-failed`. */
  cutTo(size: number): Result<void>;
  close(): void;
}

/**
 * Opens a file for appending, made (and its name made durable) when absent. The caller is its only
 * writer. A failed write is cut away again; when that fails too, every later append is refused.
 */
export function openAppender(disk: Disk, path: string): Result<Appender> {
  const opened = attempt(() => {
    const file = inFolder(disk, path, () => disk.open(path, "append"));
    try {
      return { file, size: file.stat().size };
    } catch (thrown) {
      file.close();
      throw thrown;
    }
  });
  return opened.ok ? ok(appender(opened.value.file, opened.value.size)) : opened;
}

function appender(file: DiskFile, startSize: number): Appender {
  let size = startSize;
  let broken: Err | null = null;
  const cutTo = (shorter: number): Result<void> => {
    const cut = attempt(() => {
      file.truncate(shorter);
      syncOrEnd(file);
    });
    if (!cut.ok) return broken = err("disk-failed", cut.detail);
    size = shorter;
    return cut;
  };
  return {
    size: () => size,
    append: (bytes) => {
      if (broken !== null) return broken;
      const written = attempt(() => {
        writeAll(file, bytes);
        syncOrEnd(file);
      });
      if (written.ok) {
        size += bytes.length;
        return written;
      }
      if (mustEnd(written)) return broken = written;
      const cut = cutTo(size);
      return cut.ok ? written : cut;
    },
    cutTo: (shorter) => broken ?? cutTo(Math.min(shorter, size)),
    close: () => file.close(),
  };
}
