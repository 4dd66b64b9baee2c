// The one file through which a tool's program reaches its process and its files.
import { type Host, serveTool, type ToolBody } from "./sdk.ts";
import type { EntryKind, FileFacts, FileFault, Files, OpenFile } from "./files.ts";
import { systemRandom } from "../clock/random.ts";
import { err, messageOf, ok, type Result } from "../results/result.ts";

export const denoFiles: Files = {
  lstat: (path) => attempt(async () => facts(await Deno.lstat(path))),
  list: (path) => attempt(() => Array.fromAsync(Deno.readDir(path), (entry) => entry.name)),
  linkText: (path) => attempt(() => Deno.readLink(path)),
  open: (path, how) => attempt(async () => openFile(await Deno.open(path, OPEN_OPTIONS[how]))),
  rename: (from, to) => attempt(() => done(Deno.rename(from, to))),
  link: (from, to) => attempt(() => done(Deno.link(from, to))),
  remove: (path) => attempt(() => done(Deno.remove(path))),
  chmod: (path, mode) => attempt(() => done(Deno.chmod(path, mode))),
  syncFolder: (path) =>
    attempt(async () => {
      using folder = await Deno.open(path, { read: true });
      await folder.sync();
      return null;
    }),
};

/** Runs `body` as this process's one call. */
export function runTool(body: ToolBody): Promise<void> {
  return serveTool(body, denoHost);
}

const denoHost: Host = {
  async read() {
    const buffer = new Uint8Array(65_536);
    const count = await Deno.stdin.read(buffer);
    return count === null ? null : buffer.subarray(0, count);
  },
  async write(bytes) {
    for (let from = 0; from < bytes.length;) {
      from += await Deno.stdout.write(bytes.subarray(from));
    }
  },
  exit: (status) => Deno.exit(status),
  files: denoFiles,
  random: systemRandom,
};

const OPEN_OPTIONS = {
  read: { read: true },
  create: { write: true, createNew: true, mode: 0o600 },
  append: { append: true, read: true },
} as const;

function openFile(file: Deno.FsFile): OpenFile {
  return {
    facts: () => attempt(async () => facts(await file.stat())),
    seek: (offset) => attempt(() => done(file.seek(offset, Deno.SeekMode.Start))),
    read: (buffer) => attempt(async () => (await file.read(buffer)) ?? 0),
    write: (bytes) =>
      attempt(async () => {
        for (let from = 0; from < bytes.length;) from += await file.write(bytes.subarray(from));
        return null;
      }),
    sync: () => attempt(() => done(file.sync())),
    close: () => file.close(),
  };
}

async function done(work: Promise<unknown>): Promise<null> {
  await work;
  return null;
}

async function attempt<T>(work: () => Promise<T>): Promise<Result<T, FileFault>> {
  try {
    return ok(await work());
  } catch (thrown) {
    return err(faultOf(thrown), messageOf(thrown));
  }
}

function facts(info: Deno.FileInfo): FileFacts {
  return {
    kind: kindOf(info),
    size: info.size,
    mode: (info.mode ?? 0) & 0o777,
    identity: `${info.dev}:${info.ino ?? "none"}`,
  };
}

function kindOf(info: Deno.FileInfo): EntryKind {
  if (info.isSymlink) return "link";
  if (info.isFile) return "file";
  return info.isDirectory ? "folder" : "other";
}

function faultOf(thrown: unknown): FileFault {
  if (thrown instanceof Deno.errors.NotFound) return "not-found";
  if (thrown instanceof Deno.errors.AlreadyExists) return "exists";
  if (thrown instanceof Deno.errors.IsADirectory) return "is-folder";
  if (thrown instanceof Deno.errors.NotADirectory) return "not-folder";
  if (thrown instanceof Deno.errors.PermissionDenied) return "not-allowed";
  if (thrown instanceof Deno.errors.NotCapable) return "not-allowed";
  const text = messageOf(thrown);
  // EROFS, ENOSPC, EDQUOT and EFBIG have no error type of their own.
  if (/os error 30\)/.test(text)) return "read-only";
  return /os error (?:28|122|27)\)/.test(text) ? "no-space" : "io-error";
}
