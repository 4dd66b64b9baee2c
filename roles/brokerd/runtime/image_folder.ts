// The folder that the image builder wrote: which image it is, and the list of its files, held against
// the digest that names it. The catalogue beside them is read by roles/brokerd/catalog.ts.
import type { Disk } from "../../../shared/disk/disk.ts";
import { readWhole } from "../../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { sha256Hex } from "../../../shared/tool/digest.ts";
import { type ImageEntry, ImageFileList, ImageNames } from "../../../shared/tool/image_files.ts";
import { storedAs } from "../stored.ts";

const MAX_BYTES = 4_194_304;

export interface ImageFolder {
  readonly names: ImageNames;
  readonly files: readonly ImageEntry[];
}

/** Which image the folder holds. Fails with `image-missing`. */
export function readImageNames(disk: Disk, folder: string): Result<ImageNames> {
  const names = storedAs(ImageNames, readWhole(disk, `${folder}/image.json`, MAX_BYTES));
  return names === null ? err("image-missing", `No built tool image in ${folder}`) : ok(names);
}

/** Reads the folder. Fails with `image-missing` or `image-changed`. */
export function readImageFolder(disk: Disk, folder: string): Result<ImageFolder> {
  const names = readImageNames(disk, folder);
  if (!names.ok) return names;
  const bytes = readWhole(disk, `${folder}/files.json`, MAX_BYTES);
  const isOwn = bytes.ok && sha256Hex(bytes.value) === names.value.files;
  const files = isOwn ? storedAs(ImageFileList, bytes) : null;
  if (files === null) return err("image-changed", `${folder}/files.json is not the image's own`);
  return ok({ names: names.value, files });
}
