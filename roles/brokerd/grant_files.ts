// Reads the owner's grants, one TOML file each, and says what is wrong with them.
//
// 1. A file with any problem grants nothing and denies every file-granted call of its tool; if its
//    tool cannot be read, or the folder cannot, every file-granted call of every tool.
// 2. Files, and where the links lead that they name, are looked at before each decision and read again
//    when anything about them has changed.
// 3. What a grant names is compared by real path, at load and again before a call starts.
import { parse } from "smol-toml";
import { lineOfKey, parseConfig } from "../../shared/config/load.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readWhole } from "../../shared/disk/durable.ts";
import { type Err, ok, type Result } from "../../shared/results/result.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import type { GrantSummary } from "../../shared/wire/broker_owner.ts";
import { ToolName } from "../../shared/ids/ids.ts";
import { isBuiltInName } from "./builtin_tools.ts";
import type { Tool, Tools } from "./catalog.ts";
import { covers, folded, type GrantSet } from "./grant_match.ts";
import { type AllowGrant, type Grant, GrantFile } from "./grant_schema.ts";
import { forbiddenBy, realAsFarAsThere } from "./real_paths.ts";

const MAX_GRANT_BYTES = 65_536;
const MAX_FILES = 900;

export type GrantsPlace = {
  readonly disk: Disk;
  /** Absolute path of the folder. */
  readonly folder: string;
  /** The owner's folders that grants may name, by real path. */
  readonly roots: readonly string[];
  /** Real paths that no grant may touch. */
  readonly forbidden: readonly string[];
  readonly secrets: ReadonlySet<string>;
  readonly tools: Tools;
  readonly builtIn: readonly AllowGrant[];
  readonly defaultLimits: GrantSet["defaultLimits"];
};

export type LoadedGrants = {
  readonly set: GrantSet;
  readonly summaries: readonly GrantSummary[];
  /** Name and SHA-256 of every file, for the audit log. */
  readonly files: readonly { readonly file: string; readonly sha256: string }[];
  /** Every path that is named, as it is written. */
  readonly paths: readonly string[];
  /** Sum over all problems, for status. */
  readonly problems: number;
  /** Why this load could not be put on record: nothing may be decided by it yet. */
  readonly unrecorded?: Err;
};

export interface Grants {
  /** The grants as the files are now. */
  current(): LoadedGrants;
}

/**
 * Watches the folder. `record` is told of every (re)load, the first included; until it has kept that,
 * no file allows anything.
 */
export function grantsIn(
  place: GrantsPlace,
  record: (loaded: LoadedGrants) => Result<unknown>,
): Grants {
  let seen: string | null = null;
  let loaded: LoadedGrants | null = null;
  return {
    current() {
      const now = fingerprint(place, loaded?.paths ?? []);
      if (loaded === null || now === null || now !== seen) {
        const fresh = loadGrants(place);
        const isNews = loaded === null || contentKey(fresh) !== contentKey(loaded);
        const said = isNews ? record(fresh) : ok(null);
        if (!said.ok) {
          return { ...fresh, set: { ...fresh.set, isAllBlocked: true }, unrecorded: said };
        }
        seen = now;
        loaded = fresh;
      }
      return loaded;
    },
  };
}

function contentKey(loaded: LoadedGrants): string {
  return JSON.stringify([loaded.files, loaded.summaries]);
}

function grantNames(place: GrantsPlace): string[] {
  return place.disk.list(place.folder).map((entry) => entry.name)
    .filter((name) => name.endsWith(".toml"));
}

/** What changes when a file does, or a link on one of `paths`; null when it cannot be told. */
function fingerprint(place: GrantsPlace, paths: readonly string[]): string | null {
  const facts = attempt(() =>
    grantNames(place).map((name) => {
      const { size, modifiedUnixMs, inode } = place.disk.stat(`${place.folder}/${name}`);
      return [name, size, modifiedUnixMs, inode];
    })
  );
  const led = paths.map((path) => realAsFarAsThere(place.disk, path));
  return facts.ok ? JSON.stringify([facts.value, led]) : null;
}

type Item = {
  readonly name: string;
  readonly sha256: string | null;
  /** The tool as far as it can be read. */
  readonly tool: string | null;
  readonly grant: Grant | null;
  readonly problems: readonly string[];
};

/** Reads every grant file now. Never fails: what cannot be read denies. */
export function loadGrants(place: GrantsPlace): LoadedGrants {
  const names = attempt(() => grantNames(place));
  if (!names.ok) return assemble(place, [unreadable("grants", names.detail)]);
  if (names.value.length > MAX_FILES) {
    return assemble(place, [unreadable("grants", `There are more than ${MAX_FILES} grant files`)]);
  }
  const items = names.value.map((name) => readOne(place, name));
  const nested = nestedWritable(items);
  const problemsOf = ({ name, problems }: Item) => [...problems, ...(nested.get(name) ?? [])];
  return assemble(place, items.map((item) => ({ ...item, problems: problemsOf(item) })));
}

function unreadable(name: string, problem: string): Item {
  return { name, sha256: null, tool: null, grant: null, problems: [problem] };
}

function readOne(place: GrantsPlace, name: string): Item {
  const bytes = readWhole(place.disk, `${place.folder}/${name}`, MAX_GRANT_BYTES);
  if (!bytes.ok) return unreadable(name, bytes.detail);
  const sha256 = sha256Hex(bytes.value);
  const text = decodeUtf8(bytes.value);
  if (!text.ok) return { ...unreadable(name, text.detail), sha256 };
  const parsed = parseConfig(GrantFile, text.value, name, "grants-invalid");
  if (!parsed.ok) {
    const tool = looseTool(text.value);
    return { name, sha256, tool, grant: null, problems: [parsed.detail] };
  }
  const real_paths = parsed.value.paths.map((path) => realAsFarAsThere(place.disk, path));
  const grant: Grant = { ...parsed.value, name, sha256, real_paths };
  const at = (key: string) => `${name}:${lineOfKey(text.value, [key])}: `;
  const problems = [...pathProblems(place, grant, at("paths")), ...toolProblems(place, grant, at)];
  return { name, sha256, tool: grant.tool, grant, problems };
}

/** The table as far as it can be read: only who the file is about is taken from it. */
function looseTool(text: string): string | null {
  try {
    const tool = ToolName.safeParse(parse(text).tool);
    return tool.success ? tool.data : null;
  } catch {
    // The strict reading of the same text has said what is wrong with it.
    return null;
  }
}

function pathProblems(place: GrantsPlace, grant: Grant, line: string): string[] {
  return grant.real_paths.flatMap((real, i) => {
    const shown = grant.paths[i] ?? real;
    const clash = forbiddenBy(real, place.forbidden);
    if (clash !== null) {
      return `${line}path_forbidden: ${shown} and ${clash} overlap, which keeps authority or code`;
    }
    const isRooted = place.roots.some((root) => covers(root, real));
    return isRooted ? [] : `${line}path_not_rooted: ${shown} lies in no root of brokerd.toml`;
  });
}

function toolProblems(place: GrantsPlace, grant: Grant, at: (key: string) => string): string[] {
  if (isBuiltInName(grant.tool)) {
    return [`${at("tool")}The policy of ${grant.tool} is built in; remove this grant`];
  }
  const tool = place.tools.find(grant.tool);
  if (tool === null) {
    return place.tools.problem === null ? [`${at("tool")}There is no tool ${grant.tool}`] : [];
  }
  const { manifest } = tool;
  const known = Object.keys(manifest.parameters.properties);
  const found = Object.keys(grant.patterns ?? {}).filter((name) => !known.includes(name))
    .map((name) => `${at("patterns")}${grant.tool} has no argument ${name}`);
  if (grant.commands !== undefined && !known.includes("argv")) {
    found.push(`${at("commands")}${grant.tool} runs no commands`);
  }
  // A deny on them would look as if it held.
  if (grant.paths.length > 0 && manifest.paths.length === 0) {
    found.push(`${at("paths")}${grant.tool} takes no paths`);
  }
  return grant.mode === "deny" ? found : [...found, ...allowProblems(place, grant, tool, at)];
}

function allowProblems(
  place: GrantsPlace,
  grant: AllowGrant,
  { manifest, image, elsewhere }: Tool,
  at: (key: string) => string,
): string[] {
  const found: string[] = [];
  if (grant.hosts.length > 0 && !manifest.network) {
    found.push(`${at("hosts")}${grant.tool} has no network`);
  }
  if (grant.when_untrusted === "same" && (manifest.effect !== "none" || grant.write)) {
    found.push(`${at("when_untrusted")}"same" is for tools that change and send nothing`);
  }
  if (grant.image !== undefined && grant.image !== image && !elsewhere.has(grant.image)) {
    found.push(
      `${at("image")}No image ${grant.image} of brokerd.toml holds ${grant.tool} as it is`,
    );
  }
  if (manifest.programs === true && (grant.image ?? image) === image) {
    found.push(`${at("tool")}${grant.tool} needs an image of its own: write image = DIGEST`);
  }
  if (grant.secret !== undefined) {
    const { name, as } = grant.secret;
    if (as !== "stdin" && !manifest.network) {
      found.push(`${at("secret")}${grant.tool} has no network, so no header to put a secret in`);
    }
    if (!place.secrets.has(name)) {
      found.push(`${at("secret")}There is no secret ${name} in brokerd.toml`);
    }
  }
  return found;
}

/** A tool that may write a folder could swap what lies in it, so no other grant may name that. */
function nestedWritable(items: readonly Item[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const allowing = items.flatMap(({ grant }) =>
    grant === null || grant.mode === "deny"
      ? []
      : { name: grant.name, write: grant.write, places: grant.real_paths.map(folded) }
  );
  for (const writable of allowing.filter((grant) => grant.write)) {
    for (const other of allowing) {
      if (!isNested(writable.places, other.places)) continue;
      const text = (name: string) =>
        `A path lies inside or around one of the grant ${name}, and one of them is written`;
      found.set(writable.name, [text(other.name)]);
      found.set(other.name, [text(writable.name)]);
    }
  }
  return found;
}

function isNested(some: readonly string[], others: readonly string[]): boolean {
  return some.some((a) => others.some((b) => a !== b && (covers(a, b) || covers(b, a))));
}

function assemble(place: GrantsPlace, items: readonly Item[]): LoadedGrants {
  const broken = items.filter((item) => item.problems.length > 0);
  const good = items.flatMap((item) => item.problems.length === 0 ? item.grant ?? [] : []);
  return {
    set: {
      grants: [...place.builtIn, ...good],
      blockedTools: new Set(broken.flatMap((item) => item.tool ?? [])),
      isAllBlocked: broken.some((item) => item.tool === null),
      defaultLimits: place.defaultLimits,
    },
    summaries: [
      ...place.builtIn.map((grant) => summaryOf({ ...grant, grant, problems: [] }, true)),
      ...items.map((item) => summaryOf(item, false)),
    ],
    paths: items.flatMap(({ grant }) => grant?.paths ?? []),
    files: items.flatMap(({ name, sha256 }) => sha256 === null ? [] : [{ file: name, sha256 }]),
    problems: broken.reduce((sum, item) => sum + item.problems.length, 0),
  };
}

function summaryOf(item: Item, is_built_in: boolean): GrantSummary {
  const { grant } = item;
  const allowing = grant === null || grant.mode === "deny" ? null : grant;
  return {
    name: item.name.slice(0, 255),
    tool: item.tool,
    mode: grant?.mode ?? null,
    max_taint: allowing?.max_taint ?? null,
    expires_unix_ms: allowing?.expires ?? null,
    ...(allowing === null || allowing.hosts.length === 0 ? {} : { hosts: [...allowing.hosts] }),
    is_built_in,
    sha256: item.sha256,
    problems: item.problems.slice(0, 32).map((problem) => problem.slice(0, 1_000)),
  };
}
