// The disk as a port: the only way logic touches files. Calls are synchronous and primitive; the
// safe ways to change a file are the operations of durable.ts, which nothing should bypass.
//
// 1. Every failure is thrown as a DiskError with a closed kind; durable.ts turns it into a Result.
// 2. New files get mode 0600 and new folders 0700, whatever the umask.
// 3. A write may be short; a sync that failed may never be tried again.

export type DiskErrorKind =
  | "not_found"
  | "already_exists"
  | "no_space"
  | "denied"
  | "sync_failed"
  | "io";

export class DiskError extends Error {
  readonly kind: DiskErrorKind;
  constructor(kind: DiskErrorKind, message: string) {
    super(message);
    this.name = "DiskError";
    this.kind = kind;
  }
}

export type EntryKind = "file" | "folder" | "link" | "other";
export type Entry = { readonly name: string; readonly kind: EntryKind };

export type FileFacts = {
  readonly kind: EntryKind;
  readonly size: number;
  readonly modifiedUnixMs: number;
  readonly inode: number;
  /** Number of hard links. */
  readonly links: number;
  /** Permission bits, 0..0o7777. */
  readonly mode: number;
  readonly ownerUid: number;
};

/**
 * `read`: an existing file. `append`: writes go to the end, made when absent. `create_new`: fails
 * with `already_exists` when anything has the name. `read_write`: an existing file, both ways.
 */
export type OpenMode = "read" | "append" | "create_new" | "read_write";

export interface DiskFile {
  /** Fills part of `into` from the file's position; returns the bytes read, 0 at the end. */
  read(into: Uint8Array): number;
  /** Writes at least one byte of a non-empty `bytes` and returns how many; may be short. */
  write(bytes: Uint8Array): number;
  /** Sets the position for the next read or write, in bytes from the start. */
  seek(offset: number): void;
  truncate(size: number): void;
  /** Makes the content and length durable. */
  sync(): void;
  stat(): FileFacts;
  /** Takes the exclusive lock, held until close or death; false when somebody else holds it. */
  tryLock(): boolean;
  close(): void;
}

/** A folder opened before names in it change, so that the sync afterwards reports their failure. */
export interface DiskFolder {
  sync(): void;
  close(): void;
}

export interface Disk {
  open(path: string, mode: OpenMode): DiskFile;
  openFolder(path: string): DiskFolder;
  /** Replaces whatever `to` names in one step. */
  rename(from: string, to: string): void;
  /** Gives the file a second name; fails with `already_exists` rather than replace. */
  link(existing: string, fresh: string): void;
  unlink(path: string): void;
  mkdir(path: string): void;
  /** Entries of a folder, sorted by name in code unit order. */
  list(path: string): Entry[];
  /** Facts about what the path leads to. */
  stat(path: string): FileFacts;
  /** Facts about the last element itself, a link included. */
  lstat(path: string): FileFacts;
  /** The absolute path with every link resolved; the path must exist. */
  realPath(path: string): string;
}
