// The tools there are: the image's catalogue, whose digest the image names, and the built-in one.
// brokerd is the validator that counts: what its schema refuses goes nowhere.
import { z } from "zod";
import type { Disk } from "../../shared/disk/disk.ts";
import { readWhole } from "../../shared/disk/durable.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { type Catalog, catalogBytes, readCatalog } from "../../shared/tool/catalog.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { ImageNames } from "../../shared/tool/image_files.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import { canonicalText, encodeCanonical, parseJson } from "../../shared/wire/codec.ts";
import { BUILT_IN_TOOLS, isBuiltInName } from "./builtin_tools.ts";
import type { JsonObject } from "./grant_match.ts";
import { readImageNames } from "./runtime/image_folder.ts";

const MAX_CATALOG_BYTES = 4_194_304;

/** A tool and what identifies it. */
export type Tool = {
  readonly manifest: Manifest;
  /** SHA-256 of the manifest's canonical bytes. */
  readonly sha256: string;
  /** Digest of the catalogue it stands in. */
  readonly catalog: string;
  /** Digest of the image it runs in; null when it needs none. */
  readonly image: string | null;
  /** Other images that hold this very tool: digest of the image -> digest of its catalogue. */
  readonly elsewhere: ReadonlyMap<string, string>;
  readonly schema: z.ZodType;
};

export interface Tools {
  find(name: string): Tool | null;
  all(): readonly Tool[];
  /** Digests, the toolkit's own first when there is one. */
  digests(): readonly string[];
  bytes(digest: string): Uint8Array | null;
  readonly image: ImageNames | null;
  /** Why there is no toolkit, or null. */
  readonly problem: Pick<Err, "code" | "detail"> | null;
}

type Loaded = { readonly names: ImageNames; readonly bytes: Uint8Array; readonly catalog: Catalog };

/**
 * The tools of the image in `folder` and the built-in ones. Without an image the latter alone. Images in
 * `further` add no tool; a grant may name one for a tool that it holds unchanged.
 */
export function loadTools(disk: Disk, folder: string, further: readonly string[] = []): Tools {
  const builtInBytes = catalogBytes(BUILT_IN_TOOLS);
  const builtInDigest = sha256Hex(builtInBytes);
  const builtIn = BUILT_IN_TOOLS.map((one) => toolOf(one, builtInDigest, null, []));
  const loaded = loadImage(disk, folder);
  const kit = loaded.ok ? loaded.value : null;
  const others = further.map((one) => loadImage(disk, one))
    .flatMap((one) => one.ok ? one.value : []);
  const own = kit?.catalog.tools.map((one) =>
    toolOf(one, kit.names.catalog, kit.names.digest, others)
  );
  const byName = new Map([...own ?? [], ...builtIn].map((tool) => [tool.manifest.name, tool]));
  const catalogs = new Map(kit === null ? [] : [[kit.names.catalog, kit.bytes]]);
  catalogs.set(builtInDigest, builtInBytes);
  return {
    find: (name) => byName.get(name) ?? null,
    all: () => [...byName.values()],
    digests: () => [...catalogs.keys()],
    bytes: (digest) => catalogs.get(digest) ?? null,
    image: kit?.names ?? null,
    problem: loaded.ok ? null : loaded,
  };
}

function loadImage(disk: Disk, folder: string): Result<Loaded> {
  const names = readImageNames(disk, folder);
  if (!names.ok) return names;
  const bytes = readWhole(disk, `${folder}/catalog.json`, MAX_CATALOG_BYTES);
  if (!bytes.ok) return err("image-missing", bytes.detail);
  const catalog = readCatalog(bytes.value, names.value.catalog);
  if (!catalog.ok) return catalog;
  const taken = catalog.value.tools.find((tool) => isBuiltInName(tool.name));
  if (taken !== undefined) {
    return err("catalog-mismatch", `The catalogue names the built-in tool ${taken.name}`);
  }
  return ok({ names: names.value, bytes: bytes.value, catalog: catalog.value });
}

function toolOf(
  manifest: Manifest,
  catalog: string,
  image: string | null,
  others: readonly Loaded[],
): Tool {
  const own = canonicalText(manifest);
  const same = others.filter((other) =>
    other.catalog.tools.some((one) => canonicalText(one) === own)
  );
  return {
    manifest,
    sha256: sha256Hex(encodeCanonical(manifest)),
    catalog,
    image,
    elsewhere: new Map(same.map(({ names }) => [names.digest, names.catalog])),
    schema: z.fromJSONSchema(manifest.parameters),
  };
}

/**
 * Parses JSON text as the arguments of `tool`. The value has its keys sorted, so that equal arguments
 * have equal bytes. The failure's detail says what the model should correct.
 */
export function parseArguments(tool: Tool, text: string): Result<JsonObject> {
  const value = parseJson(text);
  if (!value.ok) return err("request-invalid", value.detail);
  const parsed = tool.schema.safeParse(value.value);
  if (!parsed.success) {
    const issues = parsed.error.issues.slice(0, 5).map((issue) =>
      `${issue.path.map(String).join(".") || "arguments"}: ${issue.message}`
    );
    return err("request-invalid", issues.join("; ").slice(0, 1_000));
  }
  // What was parsed must be what was written: nothing is filled in, dropped or changed on the way.
  const sorted = sortKeys(value.value);
  if (!isJsonObject(sorted) || canonicalText(sortKeys(parsed.data)) !== canonicalText(sorted)) {
    return err("request-invalid", "The arguments are not one JSON object of the tool's parameters");
  }
  return ok(sorted);
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys(value[key])]));
}

/** The tools whose name or description has words of `query`, best first; all when it has none. */
export function searchTools(tools: Tools, query: string): readonly Tool[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const score = ({ manifest }: Tool) => {
    const name = manifest.name.split("_");
    const text = `${manifest.name} ${manifest.description}`.toLowerCase();
    return words.reduce(
      (sum, word) => sum + (name.includes(word) ? 3 : 0) + (text.includes(word) ? 1 : 0),
      0,
    );
  };
  const scored = tools.all().map((tool) => ({ tool, score: score(tool) }));
  const found = words.length === 0 ? scored : scored.filter((one) => one.score > 0);
  return found.toSorted((a, b) =>
    b.score - a.score || (a.tool.manifest.name < b.tool.manifest.name ? -1 : 1)
  ).map((one) => one.tool);
}
