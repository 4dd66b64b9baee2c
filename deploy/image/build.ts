// Builds an image into a folder: oci.tar, and beside it catalog.json, files.json and image.json.
// The same sources, runtime and libraries give the same bytes, whoever builds and wherever.
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { CATALOG_LABEL, catalogBytes } from "../../shared/tool/catalog.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { ImageNames } from "../../shared/tool/image_files.ts";
import { contentsOf, type Extra, type Sources } from "./contents.ts";
import { type Blob, type OciImage, ociImage } from "./oci.ts";
import { tarOf } from "./tar.ts";
import { file, fileList, tree } from "./tree.ts";

export const NO_EXTRA: Extra = { programs: [], manifests: [], files: [] };

/** The image label that carries the file list's SHA-256. */
const FILES_LABEL = "boxmaker.files";

export interface BuiltImage {
  readonly names: ImageNames;
  /** Everything to write, by path below the output folder. */
  readonly files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/** Computes the image; touches no file but through `sources`. */
export function buildImage(sources: Sources, extra: Extra, denoVersion: string): BuiltImage {
  const contents = contentsOf(sources, extra);
  const catalog = catalogBytes(contents.manifests);
  const list = encodeCanonical(fileList(contents.entries));
  const image = ociImage(tarOf(contents.entries), {
    [CATALOG_LABEL]: sha256Hex(catalog),
    [FILES_LABEL]: sha256Hex(list),
  });
  const names: ImageNames = {
    v: 1,
    digest: image.manifest.sha256,
    id: image.config.sha256,
    catalog: sha256Hex(catalog),
    files: sha256Hex(list),
    built_from: { deno: denoVersion, libraries: contents.libraries },
  };
  const files = new Map([
    ["oci.tar", layoutTar(image)],
    ["catalog.json", catalog],
    ["files.json", list],
    ["image.json", encodeCanonical(names)],
  ]);
  return { names, files };
}

/** The OCI layout as one archive, the form in which the image keeps its name when it is loaded. */
function layoutTar(image: OciImage): Uint8Array<ArrayBuffer> {
  const blob = ({ sha256, bytes }: Blob) => file(`blobs/sha256/${sha256}`, bytes);
  return tarOf(tree([
    blob(image.layer),
    blob(image.config),
    blob(image.manifest),
    file("index.json", image.index),
    file("oci-layout", image.layout),
  ]));
}

/** Sources on this host: `root` is the source folder, ending without a slash. */
export function hostSources(root: string): Sources {
  return {
    source: (path) => Deno.readTextFileSync(`${root}/${path}`),
    host: (path) => Deno.readFileSync(path),
    deno: Deno.execPath(),
  };
}

/** Writes an image, `image.json` last; a folder that holds this very image is left alone. */
export async function writeImage(image: BuiltImage, out: string): Promise<"written" | "present"> {
  const names = image.files.get("image.json");
  if (names !== undefined && await hasImage(image, out, names)) return "present";
  await Deno.mkdir(out, { recursive: true });
  await Deno.remove(`${out}/image.json`).catch(ignoreAbsent);
  for (const [path, bytes] of image.files) await Deno.writeFile(`${out}/${path}`, bytes);
  return "written";
}

async function hasImage(image: BuiltImage, out: string, names: Uint8Array): Promise<boolean> {
  try {
    const present = await Deno.readFile(`${out}/image.json`);
    if (sha256Hex(present) !== sha256Hex(names)) return false;
    for (const [path, bytes] of image.files) {
      if ((await Deno.stat(`${out}/${path}`)).size !== bytes.length) return false;
    }
    return true;
  } catch (thrown) {
    ignoreAbsent(thrown);
    return false;
  }
}

function ignoreAbsent(thrown: unknown): void {
  if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
}
