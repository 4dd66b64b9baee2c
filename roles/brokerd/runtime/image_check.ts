// Whether the stored image is the one that was built. A digest names an image and does not check it:
// Podman compares names. And a container with a user map of its own runs a copy of the layer, so the
// base and every copy are hashed, entry by entry, against the list written at build time.
import { z } from "zod";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { parseJson } from "../../../shared/wire/codec.ts";
import { ImageEntry } from "../../../shared/tool/image_files.ts";
import { podmanFailure } from "./failures.ts";
import type { Podman } from "./podman.ts";

/** The program that hashes, and what it may read. */
export interface StoreHasher {
  /** Absolute path of Deno. */
  readonly deno: string;
  /** Absolute path of store_hash/main.ts. */
  readonly program: string;
}

const StoredImages = z.array(z.object({
  id: z.string(),
  digest: z.string().optional(),
  layer: z.string().regex(/^[0-9a-f]{64}$/),
  "mapped-layers": z.array(z.string().regex(/^[0-9a-f]{64}$/)).optional(),
}));

/** One folder of the store that must hold exactly the image. */
export interface LayerFolder {
  readonly what: "base" | "copy";
  readonly path: string;
}

/**
 * The folders of an image in a store, from the store's own `overlay-images/images.json`. Fails with
 * `image-missing` when no stored image has the id.
 */
export function layerFolders(
  imagesJson: string,
  imageId: string,
  storage: string,
): Result<readonly LayerFolder[]> {
  const value = parseJson(imagesJson);
  const images = value.ok ? StoredImages.safeParse(value.value) : null;
  if (images === null || !images.success) {
    return err("image-changed", "The store's list of images cannot be read");
  }
  const image = images.data.find(({ id }) => id === imageId);
  if (image === undefined) return err("image-missing", `No stored image has the id ${imageId}`);
  const copies = (image["mapped-layers"] ?? []).map((id): LayerFolder => ({
    what: "copy",
    path: `${storage}/overlay/${id}/diff1`,
  }));
  return ok([{ what: "base", path: `${storage}/overlay/${image.layer}/diff` }, ...copies]);
}

/** Hashes the folders under `podman unshare` and compares each with `expected`. */
export async function checkLayers(
  podman: Podman,
  hasher: StoreHasher,
  storage: string,
  folders: readonly LayerFolder[],
  expected: readonly ImageEntry[],
): Promise<Result<null>> {
  const answer = await podman.ask([
    ...["unshare", hasher.deno, "run", "--no-prompt", "--no-config", "--no-lock", "--cached-only"],
    ...["--no-remote", "--no-npm", `--allow-read=${storage}/overlay`, hasher.program],
    ...folders.map(({ path }) => path),
  ]);
  if (!answer.ok) return answer;
  const { status, stdout, stderr } = answer.value;
  if (status !== 0 && /NotFound/.test(stderr)) {
    return err("image-changed", "A folder of the stored image is missing");
  }
  if (status !== 0) return podmanFailure(status, stderr);
  const lines = stdout.trimEnd().split("\n");
  for (const [index, { what, path }] of folders.entries()) {
    const difference = firstDifference(lines[index] ?? "", expected);
    if (difference !== null) return err("image-changed", `${difference} in the ${what} at ${path}`);
  }
  return ok(null);
}

/** The first entry in which a listing differs from what was built, or null. */
export function firstDifference(line: string, expected: readonly ImageEntry[]): string | null {
  const value = parseJson(line);
  if (!value.ok || !Array.isArray(value.value)) return "No listing";
  const found = new Map<string, string>();
  for (const entry of value.value) {
    const parsed = ImageEntry.safeParse(entry);
    if (!parsed.success) return `An entry that no image has, ${JSON.stringify(entry)},`;
    found.set(parsed.data.path, JSON.stringify(parsed.data));
  }
  for (const entry of expected) {
    const there = found.get(entry.path);
    if (there === undefined) return `${entry.path} is missing`;
    if (there !== JSON.stringify(entry)) return `${entry.path} is not as it was built`;
    found.delete(entry.path);
  }
  const extra = found.keys().next();
  return extra.done ? null : `${extra.value} was added`;
}
