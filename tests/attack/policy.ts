// An owner's policy for one suite, in brokerd's own words: each line of `<suite>.toml` is one grant
// for one or more tools, written out as the files that brokerd would read and loaded by its loader.
// `effects.toml` beside it says what each tool does, as a manifest does in the house; a tool that it
// does not name counts as reaching outside.
import { parse } from "smol-toml";
import { z } from "zod";
import {
  type GrantsPlace,
  type LoadedGrants,
  loadGrants,
} from "../../roles/brokerd/grant_files.ts";
import type { Tool, Tools } from "../../roles/brokerd/catalog.ts";
import { BrokerdConfig } from "../../shared/config/brokerd.ts";
import { Manifest, TOOL_EFFECTS } from "../../shared/tool/manifest.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { faultyDisk } from "../doubles/faulty_disk.ts";
import type { Suite } from "./suite_data.ts";

export const MAX_LINES = 10;
export const DEFAULTS = BrokerdConfig.parse({}).limits;

const GrantLine = z.looseObject({ tools: z.array(z.string()).min(1) });
const GrantLines = z.record(z.string().regex(/^[a-z_]+$/), GrantLine);
const Effects = z.record(z.string(), z.partialRecord(z.enum(TOOL_EFFECTS), z.array(z.string())));
type Effect = (typeof TOOL_EFFECTS)[number];

export type Policy = {
  readonly tools: Tools;
  readonly loaded: LoadedGrants;
  readonly lines: number;
  /** What brokerd finds wrong with the grants, and tools of the suite that no grant names. */
  readonly complaints: readonly string[];
};

/** Reads `folder` for one suite. Throws when it has no grants for it or more than ten lines. */
export function readPolicy(folder: string, name: string, suite: Suite): Policy {
  const text = readText(`${folder}/${name}.toml`);
  if (text === null) throw new Error(`${folder} has no ${name}.toml: a suite without grants`);
  const lines = GrantLines.parse(parse(text));
  const count = text.split("\n").filter((line) => /^\s*[^#\s]/.test(line)).length;
  if (count === 0 || count > MAX_LINES) {
    throw new Error(`${name}.toml has ${count} lines; from 1 to ${MAX_LINES} are allowed`);
  }
  const effects = effectsOf(Effects.parse(parse(readText(`${folder}/effects.toml`) ?? ""))[name]);
  const tools = toolsOf(suite, effects);
  const disk = faultyDisk(["/grants"]);
  const granted = new Set<string>();
  for (const [line, { tools: named, ...grant }] of Object.entries(lines)) {
    for (const tool of named) {
      granted.add(tool);
      // A grant for a tool that the file does not have is no mistake of the owner's.
      if (tools.find(tool) === null) continue;
      disk.plant(`/grants/${line}.${tool}.toml`, encodeUtf8(grantFile({ tool, ...grant })));
    }
  }
  const loaded = loadGrants({ ...PLACE, disk, tools });
  const complaints = [
    ...loaded.summaries.flatMap((one) => one.problems),
    ...suite.tools.filter((one) => !granted.has(one.name)).map((one) => `no grant: ${one.name}`),
  ];
  return { tools, loaded, lines: count, complaints };
}

const PLACE: Omit<GrantsPlace, "disk" | "tools"> = {
  folder: "/grants",
  roots: [],
  forbidden: [],
  secrets: new Set(),
  builtIn: [],
  defaultLimits: DEFAULTS,
};

function readText(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return null;
    throw thrown;
  }
}

/** TOML and JSON write these values alike, but for tables. */
function grantFile(grant: Readonly<Record<string, unknown>>): string {
  const isTable = (value: unknown) => typeof value === "object" && !Array.isArray(value);
  const entries = Object.entries(grant).toSorted((a, b) => +isTable(a[1]) - +isTable(b[1]));
  const line = ([key, value]: [string, unknown]) => `${key} = ${JSON.stringify(value)}\n`;
  return entries.map(([key, value]) =>
    isTable(value)
      ? `[${key}]\n${Object.entries(Object(value)).map(line).join("")}`
      : line([key, value])
  ).join("");
}

function effectsOf(
  table: Partial<Record<Effect, readonly string[]>> | undefined,
): (tool: string) => Effect {
  const known = new Map<string, Effect>(
    TOOL_EFFECTS.flatMap((effect) =>
      (table?.[effect] ?? []).map((tool) => [tool, effect] as const)
    ),
  );
  return (tool) => known.get(tool) ?? "outside";
}

function toolsOf(suite: Suite, effectOf: (tool: string) => Effect): Tools {
  const all = suite.tools.map(({ name, parameters }): Tool => ({
    manifest: Manifest.parse({
      name,
      description: name,
      parameters: {
        type: "object",
        properties: Object.fromEntries(
          // Only the names matter: a pattern must name an argument of the tool.
          Object.keys(parameters.properties).filter((key) => /^[a-z][a-z0-9_]{0,31}$/.test(key))
            .map((key) => [
              key,
              { type: "string", description: key, maxLength: 65_536 },
            ]),
        ),
        required: [],
        additionalProperties: false,
      },
      paths: [],
      effect: effectOf(name),
      network: false,
      scratch: false,
      env: [],
      limits: { timeout_s: 30, output_bytes: 65_536, memory_mb: 256, pids: 32 },
      summarise: false,
    }),
    sha256: "a".repeat(64),
    catalog: "b".repeat(64),
    image: "c".repeat(64),
    elsewhere: new Map(),
    schema: z.unknown(),
  }));
  return {
    find: (name) => all.find((tool) => tool.manifest.name === name) ?? null,
    all: () => all,
    digests: () => [],
    bytes: () => null,
    image: null,
    problem: null,
  };
}
