// What the tool image holds: Deno, the host libraries it needs, three small files, and the tools. No
// shell, no certificates (Deno carries its own roots), nothing that is not listed here.
//
// The libraries are the host's. Their hashes are recorded and not prescribed: a point release of the
// distribution gives another digest rather than a refusal, and image.json says which files made it.
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import { manifest as editFile } from "../../toolkit/edit_file/manifest.ts";
import { manifest as httpFetch } from "../../toolkit/http_fetch/manifest.ts";
import { manifest as listDir } from "../../toolkit/list_dir/manifest.ts";
import { manifest as readFile } from "../../toolkit/read_file/manifest.ts";
import { manifest as runCommand } from "../../toolkit/run_command/manifest.ts";
import { manifest as searchFiles } from "../../toolkit/search_files/manifest.ts";
import { manifest as writeFile } from "../../toolkit/write_file/manifest.ts";
import { moduleFiles, type Program } from "./modules.ts";
import { file, tree, type TreeEntry } from "./tree.ts";

/** The tools of the product image. */
export const TOOLS: readonly Manifest[] = [
  editFile,
  httpFetch,
  listDir,
  readFile,
  runCommand,
  searchFiles,
  writeFile,
];

/** The program that looks at its own container when brokerd starts; in no catalogue. */
const PROBE: Program = { name: "probe", main: "toolkit/probe/main.ts" };

/** Where the loader looks, and where Debian keeps the files: the same places in the image. */
export const LIBRARIES = [
  "/lib64/ld-linux-x86-64.so.2",
  "/lib/x86_64-linux-gnu/libc.so.6",
  "/lib/x86_64-linux-gnu/libdl.so.2",
  "/lib/x86_64-linux-gnu/libgcc_s.so.1",
  "/lib/x86_64-linux-gnu/libm.so.6",
  "/lib/x86_64-linux-gnu/libpthread.so.0",
  "/lib/x86_64-linux-gnu/librt.so.1",
] as const;

export interface Sources {
  /** Text of a file of the source folder. */
  source(path: string): string;
  /** Bytes of a file of the host, links followed. Throws, naming the file, when it is absent. */
  host(path: string): Uint8Array<ArrayBuffer>;
  /** Path of the Deno binary on the host. */
  readonly deno: string;
}

/** What is added to an image of the owner's own, or for tests; the product image has none. */
export interface Extra {
  readonly programs: readonly Program[];
  readonly manifests: readonly Manifest[];
  readonly files: readonly TreeEntry[];
}

export interface Contents {
  readonly entries: readonly TreeEntry[];
  readonly manifests: readonly Manifest[];
  readonly libraries: Readonly<Record<string, string>>;
}

/** The whole of an image. */
export function contentsOf(sources: Sources, extra: Extra): Contents {
  const manifests = [...TOOLS, ...extra.manifests];
  const programs = [
    ...TOOLS.map(({ name }) => ({ name, main: `toolkit/${name}/main.ts` })),
    PROBE,
    ...extra.programs,
  ];
  const libraries = LIBRARIES.map((path) => ({ path, bytes: sources.host(path) }));
  const entries = tree([
    file("bin/deno", sources.host(sources.deno), 0o755),
    ...libraries.map(({ path, bytes }) => file(path.slice(1), bytes, 0o755)),
    file("etc/passwd", encodeUtf8("tool:x:1000:1000::/tmp:/nonexistent\n")),
    file("etc/group", encodeUtf8("tool:x:1000:\n")),
    file("etc/nsswitch.conf", encodeUtf8("passwd: files\ngroup: files\nhosts: files\n")),
    { path: "dd", type: "folder", mode: 0o755 },
    { path: "tmp", type: "folder", mode: 0o1777 },
    ...moduleFiles(programs, (path) => sources.source(path)),
    ...extra.files,
  ]);
  const hashes = libraries.map(({ path, bytes }) => [path, sha256Hex(bytes)] as const);
  return { entries, manifests, libraries: Object.fromEntries(hashes) };
}
