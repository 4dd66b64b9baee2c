// A grant as the owner writes it and as brokerd uses it. The file's schema is strict; what it leaves
// out is nothing, never everything, and an empty list is refused rather than guessed at.
import { z } from "zod";
import { Sha256, ToolName } from "../../shared/ids/ids.ts";
import { DataClass, type Label } from "../../shared/labels/label.ts";
import { AbsolutePath } from "../../shared/config/fields.ts";
import { readHttpUrl } from "../../shared/url/origin.ts";
import { globProblem } from "../../shared/text/glob.ts";
import { ToolLimits } from "../../shared/tool/manifest.ts";

const Glob = z.string().max(1_000).refine(
  (text) => globProblem(text) === null,
  "write \\\\ for \\",
);
const Globs = z.array(Glob).min(1).max(64);

/** `https://name:port` or `http://name:port`, lower case, the port written out. */
export const Origin = z.string().max(300).regex(
  /^https?:\/\/(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\]):[1-9][0-9]{0,4}$/,
  "write https://name:port in lower case",
).refine((text) => readHttpUrl(text)?.origin === text, "write the address in its canonical form");

/** A TOML date-time with an offset, as milliseconds since 1970. */
const Expiry = z.custom<Date>((value) => value instanceof Date && !hasNoOffset(value), {
  message: "write a date and time with an offset, for example 2027-01-31T12:00:00Z",
}).transform((date) => date.getTime()).pipe(z.int());

/** The TOML reader marks dates, times and date-times without an offset. */
function hasNoOffset(value: Date): boolean {
  const isLocal: unknown = Reflect.get(value, "isLocal");
  return typeof isLocal === "function" && Reflect.apply(isLocal, value, []) === true;
}

export const GrantLimits = ToolLimits.extend({
  calls_per_turn: z.int().min(1).max(10_000),
  calls_per_day: z.int().min(1).max(1_000_000),
}).partial();
export type GrantLimits = z.output<typeof GrantLimits>;

const Constraints = {
  tool: ToolName,
  paths: z.array(AbsolutePath).min(1).max(64).default([]),
  hosts: z.array(Origin).min(1).max(32).default([]),
  patterns: z.record(z.string().regex(/^[a-z][a-z0-9_]{0,31}$/), Globs)
    .refine((table) => Object.keys(table).length > 0, "name an argument, or leave it out")
    .optional(),
  commands: z.array(Globs).min(1).max(64).optional(),
  jobs: z.array(z.string().regex(/^[a-z][a-z0-9_]{0,31}$/)).min(1).max(64).optional(),
};

const Allowing = {
  ...Constraints,
  write: z.boolean().default(false),
  max_taint: DataClass,
  when_untrusted: z.enum(["same", "ask", "deny"]).default("ask"),
  result_class: DataClass,
  untrusted: z.boolean().default(true),
  expires: Expiry.optional(),
  secret: z.strictObject({
    name: z.string().regex(/^[a-z][a-z0-9_]{0,31}$/),
    as: z.string().regex(/^(?:stdin|header:[A-Za-z][A-Za-z0-9-]{0,63})$/),
  }).optional(),
  approver: z.enum(["any", "local"]).default("any"),
  image: Sha256.optional(),
  limits: GrantLimits.default({}),
};

/** The content of one file in `grants/`. */
export const GrantFile = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.enum(["auto", "ask"]), ...Allowing }),
  z.strictObject({ mode: z.literal("deny"), ...Constraints }),
]);
export type GrantFile = z.output<typeof GrantFile>;

type Named = {
  /** File name, or `built-in NAME`. */
  readonly name: string;
  /** SHA-256 of the file's bytes or of the constant. */
  readonly sha256: string;
  /** `paths` with every link resolved, as far as the path exists: what is compared. */
  readonly real_paths: readonly string[];
  /** No file can say this: the grant serves only sessions whose label this one does not cover. */
  readonly above?: Label;
};

/** A grant in use. `expires` is in milliseconds since 1970. */
export type Grant = Readonly<GrantFile> & Named;
export type DenyGrant = Extract<Grant, { mode: "deny" }>;
export type AllowGrant = Exclude<Grant, { mode: "deny" }>;
