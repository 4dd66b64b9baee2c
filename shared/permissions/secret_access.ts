// What reading a role's secrets needs: exact files to read and exact variables, nothing beside them.
import { assertNever } from "../results/result.ts";
import type { SecretSource } from "../config/fields.ts";

/** The reads and variables that `sources` add to a role's row. */
export function secretAccess(
  sources: readonly SecretSource[],
): { readonly reads: string[]; readonly env: string[] } {
  const reads: string[] = [];
  const env: string[] = [];
  for (const source of sources) {
    if ("file" in source) reads.push(source.file);
    else if ("credential" in source) reads.push(source.credential);
    else if ("env" in source) env.push(source.env);
    else assertNever(source);
  }
  return { reads, env };
}
