// Everything that one call may do, as plain data: what is hashed, shown to the owner, put inside a
// Decision and handed to whoever executes it. Nothing is added to it later.
import { Label } from "../../shared/labels/label.ts";
import { CallId, SessionId, Sha256, ToolName, TurnId } from "../../shared/ids/ids.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { type Manifest, ToolLimits } from "../../shared/tool/manifest.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";
import { z } from "zod";
import type { Tool } from "./catalog.ts";
import { isBuiltInName, PLACES } from "./builtin_tools.ts";
import type { JsonObject } from "./grant_match.ts";
import type { AllowGrant, GrantLimits } from "./grant_schema.ts";
import { containerArguments, type ResolvedPath } from "./real_paths.ts";

const Args = z.record(z.string(), z.unknown());

export const Plan = z.strictObject({
  v: z.literal(1),
  session: SessionId,
  turn: TurnId,
  call: CallId,
  tool: ToolName,
  where: z.enum(["container", "memoryd", "brokerd", "caller"]),
  /** As the caller wrote them, keys sorted. */
  args: Args,
  /** With paths as the container sees them. */
  inner_args: Args,
  /** Real host paths; the i-th becomes `/grant/<i>`. */
  mounts: z.array(z.strictObject({ path: z.string(), write: z.boolean() })),
  hosts: z.array(z.string()),
  secret: z.strictObject({ name: z.string(), as: z.string() }).nullable(),
  image: Sha256.nullable(),
  tool_sha256: Sha256,
  catalog: Sha256,
  limits: ToolLimits,
  label: Label,
  result_label: Label,
  grant: z.strictObject({ name: z.string(), sha256: Sha256 }),
  approver: z.enum(["any", "local"]),
});
export type Plan = z.output<typeof Plan>;

export type Caller = {
  readonly session: SessionId;
  readonly turn: TurnId;
  readonly call: CallId;
  readonly label: Label;
};

export type LimitDefaults = Readonly<ToolLimits>;

/** Where a decided call of this tool runs. */
export function placeOf(tool: string): Plan["where"] {
  return isBuiltInName(tool) ? PLACES[tool] : "container";
}

/** The plan of one call under a grant; the lowest of each of `limits` holds. */
export function planOf(
  caller: Caller,
  tool: Tool,
  args: JsonObject,
  paths: readonly ResolvedPath[],
  grant: AllowGrant,
  limits: readonly GrantLimits[],
  defaults: LimitDefaults,
): Plan {
  const { manifest } = tool;
  return {
    v: 1,
    session: caller.session,
    turn: caller.turn,
    call: caller.call,
    tool: manifest.name,
    where: placeOf(manifest.name),
    args: { ...args },
    inner_args: { ...containerArguments(args, paths) },
    mounts: paths.map((path) => ({ path: path.opened, write: path.write })),
    hosts: manifest.network ? [...grant.hosts] : [],
    secret: grant.secret === undefined ? null : { ...grant.secret },
    image: grant.image ?? tool.image,
    tool_sha256: tool.sha256,
    catalog: (grant.image === undefined ? null : tool.elsewhere.get(grant.image)) ?? tool.catalog,
    limits: limits.map((one) => limitsOf(manifest, one, defaults)).reduce(lowest),
    label: { ...caller.label },
    result_label: { class: grant.result_class, untrusted: grant.untrusted },
    grant: { name: grant.name, sha256: grant.sha256 },
    approver: grant.approver,
  };
}

/** The grant's word, else the stricter of the tool's and the owner's defaults; always within bounds. */
function limitsOf(manifest: Manifest, limits: GrantLimits, defaults: LimitDefaults): ToolLimits {
  const own = manifest.limits;
  return ToolLimits.parse({
    timeout_s: limits.timeout_s ?? Math.min(own.timeout_s, defaults.timeout_s),
    output_bytes: limits.output_bytes ?? Math.min(own.output_bytes, defaults.output_bytes),
    memory_mb: limits.memory_mb ?? Math.max(32, Math.min(own.memory_mb, defaults.memory_mb)),
    pids: limits.pids ?? Math.max(16, Math.min(own.pids, defaults.pids)),
  });
}

function lowest(a: ToolLimits, b: ToolLimits): ToolLimits {
  return {
    timeout_s: Math.min(a.timeout_s, b.timeout_s),
    output_bytes: Math.min(a.output_bytes, b.output_bytes),
    memory_mb: Math.min(a.memory_mb, b.memory_mb),
    pids: Math.min(a.pids, b.pids),
  };
}

/** SHA-256 of a plan in a domain of its own. */
export function planHash(plan: Plan): string {
  return sha256Hex(encodeUtf8(`boxmaker/plan/v1\n${canonicalText(plan)}`));
}

/** The same for every call that asks for the same thing in the same session. */
export function requestKey(plan: Plan): string {
  const { call: _call, turn: _turn, ...rest } = plan;
  return sha256Hex(encodeUtf8(`boxmaker/request/v1\n${canonicalText(rest)}`));
}
