// A disk in memory that fails on demand and forgets like a real one. The twin of the real disk.
//
// 1. Every call that touches the disk is numbered from 1; the fault strikes call `failAt`, and when
//    it lasts every later one too. After a failed sync the next one succeeds and saves nothing of
//    what the failed one had to save.
// 2. What is not synced is a list of pending changes. After a power cut any subset of them may have
//    reached the disk, a write may have reached it up to any byte, and a name may be old or new:
//    `afterCrash` lists those disks. File and folder are synced apart, as POSIX says.
// Links count as one, and chance comes from the seed alone.
import {
  type Disk,
  DiskError,
  type DiskFile,
  type DiskFolder,
  type FileFacts,
  type OpenMode,
} from "../../shared/disk/disk.ts";

export type FaultKind = "io" | "no_space" | "short" | "crash";
export type Fault = {
  readonly failAt: number;
  readonly kind: FaultKind;
  readonly lasting: "once" | "for_good";
  /** Decides how much of a short or dying write gets through. */
  readonly seed: number;
};

/** Where an unsynced write may have been cut: at every byte, or near both ends and in the middle. */
export type Cuts = "every_byte" | "edges";

/** Thrown by every call from the crash on. Not a DiskError, so no operation takes it for a failure. */
export class SimulatedCrash extends Error {}

type Inode = { id: number; kind: "file" | "folder"; bytes: Uint8Array; locked: boolean };
type Tree = Map<string, Inode>;
type Change =
  | { readonly on: "data"; readonly inode: Inode; readonly at: number; readonly bytes: Uint8Array }
  | { readonly on: "size"; readonly inode: Inode; readonly size: number }
  | { readonly on: "names"; readonly folder: string; readonly set: readonly NameChange[] };
type NameChange = readonly [path: string, inode: Inode | null];

type State = {
  live: Tree;
  durable: Tree;
  /** Content that a crash keeps, by inode; `Inode.bytes` is what readers see. */
  synced: Map<Inode, Uint8Array>;
  pending: Change[];
  /** Changes that a failed sync has given up on; no later one makes them durable. */
  lost: Set<Change>;
  calls: number;
  crashed: boolean;
  nextId: number;
  fault: Fault | null;
};

export interface FaultyDisk extends Disk {
  /** Calls so far; a run with `failAt` above it met no fault. */
  calls(): number;
  hasCrashed(): boolean;
  /** Pending changes now; `afterCrash` has exponentially many disks in it. */
  pendingChanges(): number;
  setFault(fault: Fault | null): void;
  /** Puts content on the disk as if it had always been there. */
  plant(path: string, bytes: Uint8Array): void;
  /** Every disk a power cut now could leave, each without faults. */
  afterCrash(cuts?: Cuts): Generator<FaultyDisk>;
  /** The disk as a killed process leaves it: everything written is there, locks are gone. */
  afterKill(): FaultyDisk;
}

const parent = (path: string) => path.slice(0, Math.max(1, path.lastIndexOf("/")));

/** An empty disk with the root folder and the absolute `folders` (each after its parent). */
export function faultyDisk(folders: readonly string[], fault: Fault | null = null): FaultyDisk {
  const state: State = {
    live: new Map(),
    durable: new Map(),
    synced: new Map(),
    pending: [],
    lost: new Set(),
    calls: 0,
    crashed: false,
    nextId: 1,
    fault,
  };
  for (const path of ["/", ...folders]) {
    const inode = newInode(state, "folder");
    state.live.set(path, inode);
    state.durable.set(path, inode);
  }
  return diskOf(state);
}

function newInode(state: State, kind: Inode["kind"]): Inode {
  return { id: state.nextId++, kind, bytes: new Uint8Array(), locked: false };
}

/** Counts the call; returns the fault that strikes it, after throwing those that need no help. */
function strike(state: State, isWrite: "write" | "other"): "short" | "crash" | null {
  if (state.crashed) throw new SimulatedCrash("The machine is off");
  state.calls++;
  const fault = state.fault;
  if (fault === null || state.calls < fault.failAt) return null;
  if (state.calls > fault.failAt && fault.lasting === "once") return null;
  if (fault.kind === "io") throw new DiskError("io", "Injected: input/output error");
  if (fault.kind === "no_space" && isWrite === "write") return "short";
  if (fault.kind === "no_space") throw new DiskError("no_space", "Injected: no space left");
  if (isWrite === "write") return fault.kind;
  if (fault.kind === "short") return null;
  state.crashed = true;
  throw new SimulatedCrash("Injected: crash");
}

function find(state: State, path: string): Inode {
  const inode = state.live.get(path);
  if (inode === undefined) throw new DiskError("not_found", `Injected world: no ${path}`);
  return inode;
}

function setNames(state: State, path: string, set: readonly NameChange[]): void {
  find(state, parent(path));
  state.pending.push({ on: "names", folder: parent(path), set });
  applyNames(state.live, set);
}

function applyNames(tree: Tree, set: readonly NameChange[]): void {
  for (const [path, inode] of set) {
    if (inode === null) tree.delete(path);
    else tree.set(path, inode);
  }
}

function resized(bytes: Uint8Array, size: number): Uint8Array {
  const next = new Uint8Array(size);
  next.set(bytes.subarray(0, size));
  return next;
}

function patched(bytes: Uint8Array, at: number, patch: Uint8Array): Uint8Array {
  const next = resized(bytes, Math.max(bytes.length, at + patch.length));
  next.set(patch, at);
  return next;
}

function applyData(content: Uint8Array, change: Change): Uint8Array {
  if (change.on === "size") return resized(content, change.size);
  return change.on === "data" ? patched(content, change.at, change.bytes) : content;
}

function settle(state: State, isMeant: (change: Change) => boolean): void {
  const meant = state.pending.filter((change) => isMeant(change) && !state.lost.has(change));
  try {
    strike(state, "other");
  } catch (thrown) {
    for (const change of meant) state.lost.add(change);
    throw thrown;
  }
  for (const change of meant) {
    if (change.on === "names") applyNames(state.durable, change.set);
    else state.synced.set(change.inode, applyData(syncedBytes(state, change.inode), change));
  }
  state.pending = state.pending.filter((change) => !meant.includes(change));
}

function syncedBytes(state: State, inode: Inode): Uint8Array {
  return state.synced.get(inode) ?? new Uint8Array();
}

function factsOf(inode: Inode): FileFacts {
  return {
    kind: inode.kind,
    size: inode.bytes.length,
    modifiedUnixMs: 0,
    inode: inode.id,
    links: 1,
    mode: inode.kind === "file" ? 0o600 : 0o700,
    ownerUid: 1000,
  };
}

function writeSome(state: State, inode: Inode, at: number, bytes: Uint8Array): number {
  const fate = strike(state, "write");
  const seed = state.fault?.seed ?? 0;
  const isFull = state.fault?.kind === "no_space" && fate === "short";
  const through = fate === null ? bytes.length : (seed * 7919) % Math.max(1, bytes.length);
  const count = fate === "short" && !isFull ? Math.max(1, through) : through;
  if (count > 0) {
    const patch = bytes.slice(0, count);
    state.pending.push({ on: "data", inode, at, bytes: patch });
    inode.bytes = patched(inode.bytes, at, patch);
  }
  if (fate === "crash") {
    state.crashed = true;
    throw new SimulatedCrash("Injected: crash in a write");
  }
  if (isFull && count === 0) throw new DiskError("no_space", "Injected: no space left");
  // A full disk takes what fits and refuses the next call, which a `once` fault must still do.
  if (isFull && state.fault !== null) {
    state.fault = { ...state.fault, failAt: state.calls + 1, seed: 0 };
  }
  return count;
}

function openFile(state: State, path: string, mode: OpenMode): DiskFile {
  strike(state, "other");
  const there = state.live.get(path);
  if (there !== undefined && mode === "create_new") {
    throw new DiskError("already_exists", `Injected world: ${path} is there`);
  }
  if (there?.kind === "folder") throw new DiskError("io", `Injected world: ${path} is a folder`);
  let inode = there;
  if (inode === undefined) {
    if (mode === "read" || mode === "read_write") inode = find(state, path);
    else {
      inode = newInode(state, "file");
      setNames(state, path, [[path, inode]]);
    }
  }
  return fileOf(state, inode, mode);
}

function fileOf(state: State, inode: Inode, mode: OpenMode): DiskFile {
  let position = 0;
  let holds = false;
  return {
    read: (into) => {
      strike(state, "other");
      const part = inode.bytes.subarray(position, position + into.length);
      into.set(part);
      position += part.length;
      return part.length;
    },
    write: (bytes) => {
      if (mode === "append") position = inode.bytes.length;
      const count = writeSome(state, inode, position, bytes);
      position += count;
      return count;
    },
    seek: (offset) => {
      strike(state, "other");
      position = offset;
    },
    truncate: (size) => {
      strike(state, "other");
      state.pending.push({ on: "size", inode, size });
      inode.bytes = resized(inode.bytes, size);
    },
    sync: () => settle(state, (change) => change.on !== "names" && change.inode === inode),
    stat: () => {
      strike(state, "other");
      return factsOf(inode);
    },
    tryLock: () => {
      strike(state, "other");
      if (inode.locked && !holds) return false;
      inode.locked = true;
      holds = true;
      return true;
    },
    close: () => {
      if (holds) inode.locked = false;
      holds = false;
    },
  };
}

function openFolder(state: State, path: string): DiskFolder {
  strike(state, "other");
  if (find(state, path).kind !== "folder") throw new DiskError("io", `${path} is no folder`);
  return {
    sync: () => settle(state, (change) => change.on === "names" && change.folder === path),
    close: () => {},
  };
}

function addName(state: State, path: string, make: () => Inode): void {
  strike(state, "other");
  if (state.live.has(path)) throw new DiskError("already_exists", `Injected world: ${path}`);
  setNames(state, path, [[path, make()]]);
}

function diskOf(state: State): FaultyDisk {
  const facts = (path: string) => {
    strike(state, "other");
    return factsOf(find(state, path));
  };
  return {
    open: (path, mode) => openFile(state, path, mode),
    openFolder: (path) => openFolder(state, path),
    rename: (from, to) => {
      strike(state, "other");
      setNames(state, to, [[from, null], [to, find(state, from)]]);
    },
    link: (existing, fresh) => addName(state, fresh, () => find(state, existing)),
    unlink: (path) => {
      strike(state, "other");
      find(state, path);
      setNames(state, path, [[path, null]]);
    },
    mkdir: (path) => addName(state, path, () => newInode(state, "folder")),
    list: (path) => {
      strike(state, "other");
      find(state, path);
      return [...state.live].filter(([name]) => name !== "/" && parent(name) === path)
        .map(([name, inode]) => ({
          name: name.slice(parent(name).length).replace("/", ""),
          kind: inode.kind,
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    stat: facts,
    lstat: facts,
    realPath: (path) => {
      facts(path);
      return path;
    },
    calls: () => state.calls,
    hasCrashed: () => state.crashed,
    pendingChanges: () => state.pending.length,
    setFault: (fault) => {
      state.fault = fault === null ? null : { ...fault, failAt: fault.failAt + state.calls };
    },
    plant: (path, bytes) => plant(state, path, bytes),
    afterCrash: (cuts = "every_byte") => crashes(state, cuts),
    afterKill: () => rebuilt(state.live, (inode) => inode.bytes),
  };
}

function plant(state: State, path: string, bytes: Uint8Array): void {
  const inode = newInode(state, "file");
  inode.bytes = bytes;
  state.synced.set(inode, bytes);
  state.live.set(path, inode);
  state.durable.set(path, inode);
}

/** A fresh disk with the same names and the given content, everything durable. */
function rebuilt(tree: Tree, contentOf: (inode: Inode) => Uint8Array): FaultyDisk {
  const folders = [...tree].filter(([, inode]) => inode.kind === "folder").map(([path]) => path);
  const disk = faultyDisk(folders.filter((path) => path !== "/"));
  for (const [path, inode] of tree) {
    if (inode.kind === "file") disk.plant(path, contentOf(inode).slice());
  }
  return disk;
}

function fates(change: Change, cuts: Cuts): (Change | null)[] {
  if (change.on !== "data") return [null, change];
  const { length } = change.bytes;
  const edges = [1, 2, length >> 1, length - 1, length].filter((cut) => cut > 0 && cut <= length);
  const ends = cuts === "edges" ? [...new Set(edges)] : Array.from({ length }, (_, i) => i + 1);
  return [null, ...ends.map((end) => ({ ...change, bytes: change.bytes.subarray(0, end) }))];
}

function* choices(pending: readonly Change[], cuts: Cuts): Generator<Change[]> {
  const [first, ...rest] = pending;
  if (first === undefined) return yield [];
  for (const fate of fates(first, cuts)) {
    for (const others of choices(rest, cuts)) yield fate === null ? others : [fate, ...others];
  }
}

function* crashes(state: State, cuts: Cuts): Generator<FaultyDisk> {
  for (const kept of choices(state.pending, cuts)) {
    const tree: Tree = new Map(state.durable);
    const content = new Map(state.synced);
    for (const change of kept) {
      if (change.on === "names") applyNames(tree, change.set);
      else {content.set(
          change.inode,
          applyData(content.get(change.inode) ?? new Uint8Array(), change),
        );}
    }
    for (const path of tree.keys()) {
      if (path !== "/" && !tree.has(parent(path))) tree.delete(path);
    }
    yield rebuilt(tree, (inode) => content.get(inode) ?? new Uint8Array());
  }
}
