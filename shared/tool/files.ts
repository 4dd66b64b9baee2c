// The files a tool may touch, as a port: the tools' logic runs in tests on any folder or on a fake,
// and only shared/tool/deno_tool.ts speaks to Deno. Nothing here follows a link by itself.
import { type Err, err, ok, type Result } from "../results/result.ts";

/** Why the file system said no. */
export type FileFault =
  | "not-found"
  | "exists"
  | "not-allowed"
  | "is-folder"
  | "not-folder"
  | "no-space"
  | "read-only"
  | "io-error";

export type EntryKind = "file" | "folder" | "link" | "other";

export interface FileFacts {
  readonly kind: EntryKind;
  readonly size: number;
  /** Permission bits only. */
  readonly mode: number;
  /** Device and inode as one text: equal texts name one file. */
  readonly identity: string;
}

export interface OpenFile {
  facts(): Promise<Result<FileFacts, FileFault>>;
  /** Moves to `offset` bytes from the start. */
  seek(offset: number): Promise<Result<null, FileFault>>;
  /** Fills as much of `buffer` as one read gives; 0 at the end. */
  read(buffer: Uint8Array): Promise<Result<number, FileFault>>;
  /** Writes all of `bytes`. */
  write(bytes: Uint8Array): Promise<Result<null, FileFault>>;
  sync(): Promise<Result<null, FileFault>>;
  close(): void;
}

export interface Files {
  /** Facts of the path itself, never of what a link points to. */
  lstat(path: string): Promise<Result<FileFacts, FileFault>>;
  /** Names in a folder, in no order. */
  list(path: string): Promise<Result<readonly string[], FileFault>>;
  /** What a link says, as text. */
  linkText(path: string): Promise<Result<string, FileFault>>;
  open(path: string, how: "read" | "create" | "append"): Promise<Result<OpenFile, FileFault>>;
  rename(from: string, to: string): Promise<Result<null, FileFault>>;
  /** A second name for a file; fails with `exists` rather than replace. */
  link(from: string, to: string): Promise<Result<null, FileFault>>;
  remove(path: string): Promise<Result<null, FileFault>>;
  chmod(path: string, mode: number): Promise<Result<null, FileFault>>;
  syncFolder(path: string): Promise<Result<null, FileFault>>;
}

const SENTENCES: Readonly<Record<FileFault, string>> = {
  "not-found": "does not exist",
  "exists": "already exists",
  "not-allowed": "may not be opened by this call",
  "is-folder": "is a folder",
  "not-folder": "is not a folder",
  "no-space": "does not fit: the disk or the size limit of this call is reached",
  "read-only": "may only be read by this call",
  "io-error": "cannot be used: the disk reported an error",
};

/** A fault as the model is told it: `The file does not exist`. */
export function refused<F extends FileFault>(fault: F, what: "file" | "folder" = "file"): Err<F> {
  return err(fault, `The ${what} ${SENTENCES[fault]}`);
}

/** Facts of a path that must be a plain file or a folder; a link is neither. */
export async function lookAt(
  files: Files,
  path: string,
  what: "file" | "folder",
): Promise<Result<FileFacts, string>> {
  const found = await files.lstat(path);
  if (!found.ok) return refused(found.code, what);
  const { kind } = found.value;
  return kind === what ? found : err(`not-a-${what}`, `The path is a ${kind}, not a ${what}`);
}

/** Opens for reading the very file that was looked at; the size is the present one. */
export async function openSame(
  files: Files,
  path: string,
  looked: FileFacts,
): Promise<Result<{ readonly file: OpenFile; readonly size: number }, string>> {
  const opened = await files.open(path, "read");
  if (!opened.ok) return refused(opened.code);
  const facts = await opened.value.facts();
  if (facts.ok && facts.value.identity === looked.identity) {
    return ok({ file: opened.value, size: facts.value.size });
  }
  opened.value.close();
  return err("changed", "The file was replaced while it was opened; ask again");
}

/** Reads from the file's place until `into` is full or the file ends; how many bytes came. */
export async function readInto(
  file: OpenFile,
  into: Uint8Array,
): Promise<Result<number, FileFault>> {
  let filled = 0;
  while (filled < into.length) {
    const count = await file.read(into.subarray(filled));
    if (!count.ok) return count;
    if (count.value === 0) break;
    filled += count.value;
  }
  return ok(filled);
}
