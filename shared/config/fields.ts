// The field kinds every configuration schema is made of. Each admits only text that stays one value
// inside a permission flag: no comma, no line break, no relative part. Absent never means "all".
import { z } from "zod";

/** One `host:port`; the host is a name, an IPv4 address or a bracketed IPv6 address. */
export const HostPort = z.string().max(260)
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]):[1-9][0-9]{0,4}$/,
    "write host:port in lower case, for example 127.0.0.1:8080",
  )
  .refine((text) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, "port is above 65535");
export type HostPort = z.output<typeof HostPort>;

/** An absolute path in its shortest spelling: no `.`, `..`, double or trailing slash, no comma. */
export const AbsolutePath = z.string().max(4_096)
  .regex(/^(?:\/[^/,\p{Cc}]+)+$/u, "write an absolute path without comma or trailing slash")
  .refine((text) => !/\/\.\.?(?:\/|$)/.test(text), "write the path without . and ..");
export type AbsolutePath = z.output<typeof AbsolutePath>;

/** A count within bounds. */
export function count(least: number, most: number): z.ZodInt {
  return z.int().min(least).max(most);
}

/**
 * Where a secret is kept: an owner-only file, a systemd credential (a file by the absolute path that
 * the unit renders), or an environment variable whose name begins with BOXMAKER_SECRET_.
 */
export const SecretSource = z.union([
  z.strictObject({ file: AbsolutePath }),
  z.strictObject({ credential: AbsolutePath }),
  z.strictObject({ env: z.string().regex(/^BOXMAKER_SECRET_[A-Z0-9_]{1,48}$/) }),
]);
export type SecretSource = z.output<typeof SecretSource>;

/** Named secrets of a role. */
export const Secrets = z.record(z.string().regex(/^[a-z][a-z0-9_]{0,31}$/), SecretSource)
  .prefault({})
  .describe(
    "Where each named secret is kept: { file = PATH }, { credential = PATH } or { env = NAME }",
  );
export type Secrets = z.output<typeof Secrets>;
