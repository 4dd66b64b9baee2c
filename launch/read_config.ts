// Reads one role's configuration for the flag program.
import type { z } from "zod";
import { err, ok, type Result } from "../shared/results/result.ts";
import { parse } from "smol-toml";

/** The parsed configuration in `path`, or the defaults when there is no such file. */
export function readConfig<T>(path: string, schema: z.ZodType<T>): Result<T> {
  let text = "";
  try {
    text = Deno.readTextFileSync(path);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
  try {
    const parsed = schema.safeParse(parse(text));
    return parsed.success ? ok(parsed.data) : err("config-invalid", `${path}: ${parsed.error}`);
  } catch (thrown) {
    return err("config-invalid", `${path}: ${thrown}`);
  }
}
