// The real disk. Only this file of shared/disk/ speaks to Deno; it maps errors and adds nothing.
// A call interrupted by a signal is tried again, except a sync: nobody knows what that one did.
import {
  type Disk,
  DiskError,
  type DiskErrorKind,
  type DiskFile,
  type EntryKind,
  type FileFacts,
  type OpenMode,
} from "./disk.ts";

const NO_SPACE = ["ENOSPC", "EDQUOT", "EFBIG"];

function kindOf(thrown: unknown): DiskErrorKind {
  if (thrown instanceof Deno.errors.NotFound) return "not_found";
  if (thrown instanceof Deno.errors.AlreadyExists) return "already_exists";
  if (thrown instanceof Deno.errors.NotCapable) return "denied";
  if (thrown instanceof Deno.errors.PermissionDenied) return "denied";
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : null;
  const text = thrown instanceof Error ? thrown.message : "";
  if (typeof code === "string" && NO_SPACE.includes(code)) return "no_space";
  return /os error (?:27|28|122)\)/.test(text) ? "no_space" : "io";
}

function run<T>(what: string, path: string, call: () => T): T {
  for (;;) {
    try {
      return call();
    } catch (thrown) {
      if (thrown instanceof Deno.errors.Interrupted && what !== "sync") continue;
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw new DiskError(kindOf(thrown), `Cannot ${what} ${path}: ${reason}`);
    }
  }
}

function entryKind(entry: Deno.FileInfo | Deno.DirEntry): EntryKind {
  if (entry.isSymlink) return "link";
  if (entry.isDirectory) return "folder";
  return entry.isFile ? "file" : "other";
}

function factsOf(info: Deno.FileInfo): FileFacts {
  return {
    kind: entryKind(info),
    size: info.size,
    modifiedUnixMs: info.mtime?.getTime() ?? 0,
    inode: info.ino ?? -1,
    links: info.nlink ?? -1,
    mode: (info.mode ?? 0o7777) & 0o7777,
    ownerUid: info.uid ?? -1,
  };
}

const OPTIONS: Record<OpenMode, Deno.OpenOptions> = {
  read: { read: true },
  append: { append: true, create: true, mode: 0o600 },
  create_new: { write: true, createNew: true, mode: 0o600 },
  read_write: { read: true, write: true },
};

function wrap(file: Deno.FsFile, path: string): DiskFile {
  return {
    read: (into) => run("read", path, () => file.readSync(into)) ?? 0,
    write: (bytes) => run("write", path, () => file.writeSync(bytes)),
    seek: (offset) => {
      run("seek", path, () => file.seekSync(offset, Deno.SeekMode.Start));
    },
    truncate: (size) => run("truncate", path, () => file.truncateSync(size)),
    sync: () => run("sync", path, () => file.syncDataSync()),
    stat: () => factsOf(run("stat", path, () => file.statSync())),
    tryLock: () => run("lock", path, () => file.tryLockSync(true)),
    close: () => file.close(),
  };
}

export const denoDisk: Disk = {
  open: (path, mode) => wrap(run("open", path, () => Deno.openSync(path, OPTIONS[mode])), path),
  openFolder: (path) => {
    const folder = run("open", path, () => Deno.openSync(path, { read: true }));
    return { sync: () => run("sync", path, () => folder.syncSync()), close: () => folder.close() };
  },
  rename: (from, to) => run("rename", from, () => Deno.renameSync(from, to)),
  link: (existing, fresh) => run("link", existing, () => Deno.linkSync(existing, fresh)),
  unlink: (path) => run("remove", path, () => Deno.removeSync(path)),
  mkdir: (path) => run("make folder", path, () => Deno.mkdirSync(path, { mode: 0o700 })),
  list: (path) =>
    run("list", path, () => [...Deno.readDirSync(path)])
      .map((entry) => ({ name: entry.name, kind: entryKind(entry) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  stat: (path) => factsOf(run("stat", path, () => Deno.statSync(path))),
  lstat: (path) => factsOf(run("stat", path, () => Deno.lstatSync(path))),
  realPath: (path) => run("resolve", path, () => Deno.realPathSync(path)),
};
