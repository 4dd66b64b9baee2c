// Checks the owner's path roots before they become a permission of brokerd. A root is given by its
// real path, and none may contain, equal or lie in a place that keeps authority or code.
import { err, ok, type Result } from "../shared/results/result.ts";

/** The roots that exist; a missing one is left out with a line on stderr, a forbidden one refused. */
export function checkedRoots(
  roots: readonly string[],
  forbidden: readonly string[],
): Result<string[]> {
  const found: string[] = [];
  for (const root of roots) {
    const real = realPathOf(root);
    if (real === undefined) {
      console.error(`serve: ${root}: no such folder; grants below it will not hold`);
      continue;
    }
    if (real !== root) return err("root-forbidden", `Root ${root} is a link; write ${real}`);
    const clash = forbidden.find((place) => covers(root, place) || covers(place, root));
    if (clash !== undefined) return err("root-forbidden", `Root ${root} and ${clash} overlap`);
    found.push(root);
  }
  return ok(found);
}

/** Whether `inner` is `outer` itself or lies below it; both are absolute real paths. */
export function covers(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

function realPathOf(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}
