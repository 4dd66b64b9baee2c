// Lists and hashes folders of Podman's store. The copies of an image belong to subordinate ids that
// nobody else may read, so brokerd runs this under `podman unshare`:
//
//   deno run --allow-read=STORE main.ts FOLDER...
//
// It prints one canonical JSON line per folder, the entries sorted as the image's own file list is,
// and writes nothing.
import { createHash } from "node:crypto";
import { encodeUtf8 } from "../../../../shared/wire/codec.ts";

type Listed = Readonly<Record<string, string | number>>;

function hashOf(path: string): string {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(1_048_576);
  using file = Deno.openSync(path, { read: true });
  for (let count = file.readSync(buffer); count !== null; count = file.readSync(buffer)) {
    hash.update(buffer.subarray(0, count));
  }
  return hash.digest("hex");
}

function entryOf(path: string, full: string): Listed {
  const info = Deno.lstatSync(full);
  const mode = (info.mode ?? 0) & 0o7777;
  if (info.isSymlink) return { path, type: "link", target: Deno.readLinkSync(full) };
  if (info.isDirectory) return { path, type: "folder", mode };
  if (!info.isFile) return { path, type: "other", mode };
  return { path, type: "file", mode, size: info.size, sha256: hashOf(full) };
}

function listBelow(root: string, below: string, into: Listed[]): void {
  for (const { name } of Deno.readDirSync(`${root}/${below}`)) {
    const path = `${below}${name}`;
    const entry = entryOf(path, `${root}/${path}`);
    into.push(entry);
    if (entry["type"] === "folder") listBelow(root, `${path}/`, into);
  }
}

for (const folder of Deno.args) {
  const entries: Listed[] = [];
  listBelow(folder, "", entries);
  entries.sort((a, b) => (String(a["path"]) < String(b["path"]) ? -1 : 1));
  const line = encodeUtf8(`${JSON.stringify(entries)}\n`);
  for (let from = 0; from < line.length;) from += Deno.stdout.writeSync(line.subarray(from));
}
