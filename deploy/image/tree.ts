// What an image holds, as a list: the one value from which the layer, the file list and the checks are
// made. Paths are relative, without a leading or trailing slash, sorted so that a folder precedes what
// is in it; owner and times are not part of it.
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { ImageEntry } from "../../shared/tool/image_files.ts";

export type TreeEntry =
  | { readonly path: string; readonly type: "folder"; readonly mode: number }
  | {
    readonly path: string;
    readonly type: "file";
    readonly mode: number;
    readonly bytes: Uint8Array;
  }
  | { readonly path: string; readonly type: "link"; readonly target: string };

/** A plain file; `mode` is 0o644 or, for programs, 0o755. */
export function file(path: string, bytes: Uint8Array, mode = 0o644): TreeEntry {
  return { path, type: "file", mode, bytes };
}

/**
 * Sorts by path in code-unit order and adds the folders that the entries lie in, mode 0755. Throws on
 * a path that is there twice, absolute, empty, climbing or too long for a tar header.
 */
export function tree(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  const all = new Map<string, TreeEntry>();
  for (const entry of entries) {
    if (
      !/^(?!\.{1,2}(?:\/|$))[A-Za-z0-9._+-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._+-]+)*$/.test(
        entry.path,
      )
    ) {
      throw new TypeError(`Not a path for an image: ${entry.path}`);
    }
    if (entry.path.length > 99) throw new TypeError(`Too long for an image: ${entry.path}`);
    if (all.has(entry.path)) throw new TypeError(`Twice in the image: ${entry.path}`);
    all.set(entry.path, entry);
  }
  for (const { path } of entries) {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const folder = path.slice(0, end);
      if (!all.has(folder)) all.set(folder, { path: folder, type: "folder", mode: 0o755 });
    }
  }
  return [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The file list that the stored image is compared with. */
export function fileList(entries: readonly TreeEntry[]): readonly ImageEntry[] {
  return entries.map((entry): ImageEntry => {
    if (entry.type === "folder") return { path: entry.path, type: "folder", mode: entry.mode };
    if (entry.type === "link") return { path: entry.path, type: "link", target: entry.target };
    return {
      path: entry.path,
      type: "file",
      mode: entry.mode,
      size: entry.bytes.length,
      sha256: sha256Hex(entry.bytes),
    };
  });
}
