// Reads a file that this role wrote itself: exactly what its schema says, or nothing.
import type { z } from "zod";
import type { Result } from "../../shared/results/result.ts";
import { parseCanonical } from "../../shared/wire/codec.ts";

/** The value in `bytes`; null when they could not be read or are not canonical bytes of `schema`. */
export function storedAs<T>(schema: z.ZodType<T>, bytes: Result<Uint8Array>): T | null {
  const value = bytes.ok ? parseCanonical(bytes.value) : bytes;
  const parsed = schema.safeParse(value.ok ? value.value : null);
  return parsed.success ? parsed.data : null;
}
