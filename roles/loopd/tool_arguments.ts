// Arguments of tool calls: JSON text that must be one object, checked against a tool's schema.
import { z } from "zod";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import type { Schema } from "./core_tools.ts";

export type Arguments = { readonly [key: string]: unknown };

/** The object that `text` is the JSON of. Fails with `arguments-invalid`. */
export function parseArguments(text: string): Result<Arguments> {
  const value = parseJson(text);
  if (!value.ok) return err("arguments-invalid", value.detail);
  if (typeof value.value !== "object" || value.value === null || Array.isArray(value.value)) {
    return err("arguments-invalid", "The arguments are not a JSON object");
  }
  return ok({ ...value.value });
}

/** Whether a server can be shown this text as the arguments of a call. */
export function isArguments(text: string): boolean {
  return parseArguments(text).ok;
}

/** Why arguments do not fit a tool's schema, one line a problem, or null. A schema that cannot be read admits everything, as brokerd decides anyway. */
export function schemaProblem(schema: Schema, value: Arguments): string | null {
  let check: z.ZodType;
  try {
    check = z.fromJSONSchema({ ...schema });
  } catch {
    // An unusual schema is no reason to withhold a call that brokerd checks again.
    return null;
  }
  const parsed = check.safeParse(value);
  return parsed.success ? null : z.prettifyError(parsed.error);
}
