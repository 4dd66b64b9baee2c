// The files a tool may touch, as a port: the tools' logic runs in tests on any folder or on a fake,
// and only shared/tool/deno_tool.ts speaks to Deno. Nothing here follows a link by itself.
import type { Result } from "../results/result.ts";

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

/** A clause for the model: `does not exist`. */
export function faultSentence(fault: FileFault): string {
  return SENTENCES[fault];
}
