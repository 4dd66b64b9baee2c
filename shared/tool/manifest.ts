// What a tool of the toolkit says about itself: data, checked when the image is built and again when
// brokerd loads the catalogue.
//
// 1. The parameters are a closed object of described, bounded values; nothing else is accepted.
// 2. Every argument that names a path is marked, because brokerd resolves and mounts it.
// 3. The model sees name, description and parameters; brokerd alone uses the rest.
import { z } from "zod";
import { ToolName } from "../ids/ids.ts";

const ArgumentName = z.string().regex(/^[a-z][a-z0-9_]{0,31}$/);
const Described = { description: z.string().min(1).max(500) };

const TextParameter = z.strictObject({
  type: z.literal("string"),
  ...Described,
  enum: z.array(z.string().min(1).max(100)).min(1).max(20).optional(),
  minLength: z.int().min(0).optional(),
  maxLength: z.int().min(1).max(524_288),
});
const CountParameter = z.strictObject({
  type: z.literal("integer"),
  ...Described,
  minimum: z.int(),
  maximum: z.int(),
});
const FlagParameter = z.strictObject({ type: z.literal("boolean"), ...Described });
const TextItem = z.strictObject({
  type: z.literal("string"),
  maxLength: z.int().min(1).max(65_536),
});
/** One entry of a list of small closed records; the values are texts and flags only. */
const RecordItem = z.strictObject({
  type: z.literal("object"),
  properties: z.record(ArgumentName, z.discriminatedUnion("type", [TextParameter, FlagParameter])),
  required: z.array(ArgumentName).max(16),
  additionalProperties: z.literal(false),
});
const ListParameter = z.strictObject({
  type: z.literal("array"),
  ...Described,
  items: z.discriminatedUnion("type", [TextItem, RecordItem]),
  minItems: z.int().min(0).optional(),
  maxItems: z.int().min(1).max(256),
});

/** JSON Schema of a tool's arguments, in the subset the house uses. */
export const Parameters = z.strictObject({
  type: z.literal("object"),
  properties: z.record(
    ArgumentName,
    z.discriminatedUnion("type", [TextParameter, CountParameter, FlagParameter, ListParameter]),
  ),
  required: z.array(ArgumentName).max(32),
  additionalProperties: z.literal(false),
}).refine((p) => p.required.every((name) => Object.hasOwn(p.properties, name)), {
  message: "A required argument is not described",
});
export type Parameters = z.output<typeof Parameters>;

/**
 * An argument that names a path. `file` and `folder` exist and are mounted themselves; for `new_file`
 * the parent folder is mounted and the tool gets the name below it.
 */
export const PathArgument = z.strictObject({
  argument: ArgumentName,
  need: z.enum(["file", "folder", "new_file"]),
  write: z.boolean(),
});
export type PathArgument = z.output<typeof PathArgument>;

export const TOOL_EFFECTS = ["none", "local", "outside"] as const;

/** Bounds of one call; a grant may lower or raise them within these ranges. */
export const ToolLimits = z.strictObject({
  timeout_s: z.int().min(1).max(3_600),
  output_bytes: z.int().min(1).max(67_108_864),
  memory_mb: z.int().min(32).max(4_096),
  pids: z.int().min(16).max(512),
});
export type ToolLimits = z.output<typeof ToolLimits>;

export const Manifest = z.strictObject({
  name: ToolName,
  description: z.string().min(1).max(1_000),
  parameters: Parameters,
  paths: z.array(PathArgument).max(4),
  /** `none` changes nothing anywhere, `local` changes the owner's files, `outside` reaches others. */
  effect: z.enum(TOOL_EFFECTS),
  /** Whether the tool speaks to granted origins through a call's egress socket. */
  network: z.boolean(),
  /** Whether every body it sends is recorded in full before it leaves. */
  log_payload: z.literal(true).optional(),
  /** Whether it runs the program that its argument `argv` begins with, in an image of its own. */
  programs: z.literal(true).optional(),
  /** Whether the tool uses the bounded scratch folder of its container. */
  scratch: z.boolean(),
  /** Names of environment variables the program asks for; they may be unset. */
  env: z.array(z.string().regex(/^[A-Z][A-Z0-9_]{0,63}$/)).max(16),
  limits: ToolLimits,
  /** Whether a long result is worth a summary by the model. */
  summarise: z.boolean(),
}).refine((m) => m.paths.every((p) => m.parameters.properties[p.argument]?.type === "string"), {
  message: "A path argument is not a described string",
}).refine((m) => m.effect !== "none" || m.paths.every((p) => !p.write), {
  message: "A tool that writes has an effect",
}).refine((m) => m.effect === "outside" || !m.network, {
  message: "A tool with network has an outside effect",
});
export type Manifest = z.output<typeof Manifest>;
