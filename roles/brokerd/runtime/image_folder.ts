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

/** Reads the folder. Fails with `image-missing` or `image-changed`. */
export function readImageFolder(disk: Disk, folder: string): Result<ImageFolder> {
  const read = (name: string) => readWhole(disk, `${folder}/${name}`, MAX_BYTES);
  const namesBytes = read("image.json");
  const filesBytes = read("files.json");
  if (!namesBytes.ok || !filesBytes.ok) {
    return err("image-missing", `No built tool image in ${folder}`);
  }
  const names = storedAs(ImageNames, namesBytes);
  if (names === null) return err("image-missing", `${folder}/image.json has another form`);
  const files = sha256Hex(filesBytes.value) === names.files
    ? storedAs(ImageFileList, filesBytes)
    : null;
  if (files === null) return err("image-changed", `${folder}/files.json is not the image's own`);
  return ok({ names, files });
}
