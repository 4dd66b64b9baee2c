// The catalogue of an image's tools: canonical bytes written beside the image, whose SHA-256 is in the
// image's own label. A catalogue with another digest, order or name twice is refused.
import { z } from "zod";
import { encodeCanonical, parseCanonical } from "../wire/codec.ts";
import { err, ok, type Result } from "../results/result.ts";
import { sha256Hex } from "./digest.ts";
import { Manifest } from "./manifest.ts";

export const Catalog = z.strictObject({
  v: z.literal(1),
  tools: z.array(Manifest).min(1).max(256),
}).refine((c) => c.tools.every((tool, i) => i === 0 || (c.tools[i - 1]?.name ?? "") < tool.name), {
  message: "The tools are not sorted by name, or one is there twice",
});
export type Catalog = z.output<typeof Catalog>;

/** The image label that carries the catalogue's SHA-256. */
export const CATALOG_LABEL = "boxmaker.catalog";

/** Canonical bytes of the manifests, sorted by name. Throws on a manifest that breaks a rule. */
export function catalogBytes(manifests: readonly Manifest[]): Uint8Array<ArrayBuffer> {
  const tools = manifests.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return encodeCanonical(Catalog.parse({ v: 1, tools }));
}

/** Reads a catalogue that must have `sha256`. Fails with `catalog-mismatch`. */
export function readCatalog(bytes: Uint8Array, sha256: string): Result<Catalog> {
  const found = sha256Hex(bytes);
  if (found !== sha256) {
    return err("catalog-mismatch", `The catalogue has SHA-256 ${found}, the image names ${sha256}`);
  }
  const value = parseCanonical(bytes);
  if (!value.ok) return err("catalog-mismatch", value.detail);
  const parsed = Catalog.safeParse(value.value);
  if (!parsed.success) return err("catalog-mismatch", z.prettifyError(parsed.error));
  return ok(parsed.data);
}
