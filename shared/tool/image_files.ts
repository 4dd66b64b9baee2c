// The two files written beside an image: its names (image.json) and its file list (files.json). The
// image builder writes them, brokerd reads them; both are canonical JSON.
import { z } from "zod";
import { Sha256 } from "../ids/ids.ts";

const EntryPath = z.string().min(1).max(255);

/** One entry of the image. Owner and times are the same everywhere and not listed. */
export const ImageEntry = z.discriminatedUnion("type", [
  z.strictObject({ path: EntryPath, type: z.literal("folder"), mode: z.int() }),
  z.strictObject({
    path: EntryPath,
    type: z.literal("file"),
    mode: z.int(),
    size: z.int().min(0),
    sha256: Sha256,
  }),
  z.strictObject({ path: EntryPath, type: z.literal("link"), target: z.string().max(255) }),
]);
export type ImageEntry = z.output<typeof ImageEntry>;

export const ImageFileList = z.array(ImageEntry).min(1).max(10_000);

export const ImageNames = z.strictObject({
  v: z.literal(1),
  /** SHA-256 of the manifest: what the image is run by. */
  digest: Sha256,
  /** SHA-256 of the configuration: Podman's image id. */
  id: Sha256,
  catalog: Sha256,
  files: Sha256,
  built_from: z.strictObject({
    deno: z.string().max(64),
    /** Host libraries in the image, by path; another release of libc gives another digest. */
    libraries: z.record(z.string().max(255), Sha256),
  }),
});
export type ImageNames = z.output<typeof ImageNames>;

/** The name every image of the house is stored under; only the digest chooses. */
export const IMAGE_REPOSITORY = "localhost/boxmaker/toolkit";
