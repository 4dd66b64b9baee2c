// Turns the paths of a call and of a grant into the real paths that are compared and mounted. Links
// are resolved by the system; what cannot be resolved keeps its own name and so matches no grant
// that it only pretends to lie in.
import { type Disk, DiskError } from "../../shared/disk/disk.ts";
import { attempt, parentOf } from "../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { Manifest, PathArgument } from "../../shared/tool/manifest.ts";
import { covers, folded, type JsonObject, type NamedPath } from "./grant_match.ts";
import { mountProblem } from "./runtime/argv.ts";

/** A named path and, when the call cannot use it as it is now, why. */
export type ResolvedPath = NamedPath & { readonly problem: string | null };

/** The real path of the longest part of `path` that exists, with the rest as it is written. */
export function realAsFarAsThere(disk: Disk, path: string): string {
  try {
    return disk.realPath(path);
  } catch (thrown) {
    if (!(thrown instanceof DiskError)) throw thrown;
    const parent = parentOf(path);
    if (parent === path || (thrown.kind !== "not_found" && thrown.kind !== "denied")) return path;
    const real = realAsFarAsThere(disk, parent);
    return `${real === "/" ? "" : real}${path.slice(path.lastIndexOf("/"))}`;
  }
}

/** Resolves every path argument that `args` holds. Fails with `request-invalid` on a path that is no full path. */
export function resolvePaths(
  disk: Disk,
  manifest: Manifest,
  args: JsonObject,
): Result<readonly ResolvedPath[]> {
  const found: ResolvedPath[] = [];
  for (const argument of manifest.paths) {
    const asked = args[argument.argument];
    if (asked === undefined) continue;
    const why = typeof asked === "string" ? mountProblem(asked) : "it is not a text";
    if (typeof asked !== "string" || why !== null) {
      return err("request-invalid", `${argument.argument}: write an absolute path; ${why}`);
    }
    found.push(resolveOne(disk, argument, asked));
  }
  return ok(found);
}

function resolveOne(disk: Disk, need: PathArgument, asked: string): ResolvedPath {
  const named = { argument: need.argument, asked, write: need.write };
  if (need.need === "new_file") {
    const opened = realAsFarAsThere(disk, parentOf(asked));
    const target = `${opened === "/" ? "" : opened}${asked.slice(asked.lastIndexOf("/"))}`;
    const problem = kindProblem(disk, opened, "folder");
    return { ...named, target, opened, opensFolder: true, problem };
  }
  const opened = realAsFarAsThere(disk, asked);
  const problem = kindProblem(disk, opened, need.need);
  return { ...named, target: opened, opened, opensFolder: need.need === "folder", problem };
}

function kindProblem(disk: Disk, path: string, kind: "file" | "folder"): string | null {
  const there = attempt(() => disk.lstat(path));
  if (!there.ok) {
    return there.code === "file-missing"
      ? `There is no ${kind} at that path`
      : `The ${kind} at that path cannot be looked at`;
  }
  const found = there.value;
  if (found.kind !== kind) return `There is a ${found.kind}, not a ${kind}, at that path`;
  // Another name of the same file may lie anywhere.
  return kind === "file" && found.links !== 1 ? "That file has other names (hard links)" : null;
}

/** The arguments as the container sees them: each path below its mount. */
export function containerArguments(args: JsonObject, paths: readonly NamedPath[]): JsonObject {
  const inside = paths.map((path, index) => {
    const rest = path.target === path.opened
      ? ""
      : path.target.slice(path.opened === "/" ? 0 : path.opened.length);
    return [path.argument, `/grant/${index}${rest}`] as const;
  });
  return { ...args, ...Object.fromEntries(inside) };
}

/**
 * The first of `forbidden` that `path` contains, equals or lies in, or null. All are real paths; how they
 * are spelled does not matter.
 */
export function forbiddenBy(path: string, forbidden: readonly string[]): string | null {
  const asked = folded(path);
  const overlaps = (kept: string) => covers(kept, asked) || covers(asked, kept);
  return forbidden.find((place) => overlaps(folded(place))) ?? null;
}
