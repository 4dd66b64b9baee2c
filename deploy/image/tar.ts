// An ustar archive with one possible form: numeric owner 0, time 0, no names, entries in the order
// given, two blocks of zeros at the end. The same tree gives the same bytes anywhere.
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { TreeEntry } from "./tree.ts";

const BLOCK = 512;

/** The archive of a sorted tree. */
export function tarOf(entries: readonly TreeEntry[]): Uint8Array<ArrayBuffer> {
  const size = entries.reduce((sum, entry) => sum + BLOCK + padded(sizeOf(entry)), 2 * BLOCK);
  const tar = new Uint8Array(size);
  let at = 0;
  for (const entry of entries) {
    tar.set(header(entry), at);
    at += BLOCK;
    if (entry.type !== "file") continue;
    tar.set(entry.bytes, at);
    at += padded(entry.bytes.length);
  }
  return tar;
}

function sizeOf(entry: TreeEntry): number {
  return entry.type === "file" ? entry.bytes.length : 0;
}

function padded(length: number): number {
  return Math.ceil(length / BLOCK) * BLOCK;
}

const TYPE_FLAG = { file: "0", link: "2", folder: "5" } as const;

function header(entry: TreeEntry): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encodeUtf8(text), at);
  const octal = (at: number, width: number, value: number) =>
    put(at, value.toString(8).padStart(width - 1, "0"));
  put(0, entry.type === "folder" ? `${entry.path}/` : entry.path);
  octal(100, 8, entry.type === "link" ? 0o777 : entry.mode);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, sizeOf(entry));
  octal(136, 12, 0);
  put(148, "        ");
  put(156, TYPE_FLAG[entry.type]);
  if (entry.type === "link") put(157, entry.target);
  put(257, "ustar\u000000");
  octal(329, 8, 0);
  octal(337, 8, 0);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\u0000 `);
  return block;
}
