// What a call of the model means: which tool is asked for, with which arguments, or what is wrong
// with it. Pure. Whatever is wrong becomes a text the model can act on, never a stop.
import { z } from "zod";
import { ToolName } from "../../shared/ids/ids.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import type { LoggedCall } from "../../shared/session_log/records.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";
import { MAX_ARGUMENT_BYTES } from "../../shared/wire/limits.ts";
import { CALL_TOOL, type KnownTool, type Schema } from "./core_tools.ts";
import { type Arguments, parseArguments, schemaProblem } from "./tool_arguments.ts";

export type Resolved =
  | { readonly is: "run"; readonly tool: string; readonly args: Arguments; readonly text: string }
  | {
    readonly is: "corrective";
    readonly tool: string;
    readonly code: ErrorCode;
    readonly text: string;
  };

export interface ToolBook {
  /** The session's own declared tools. */
  readonly declared: readonly KnownTool[];
  /** Tools of the catalogues in force; null when they could not be fetched. */
  readonly catalog: readonly KnownTool[] | null;
}

const Declared = z.object({
  function: z.object({
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
  }),
});

/** The declared tools of a baseline's `tools` array. */
export function declaredTools(tools: readonly unknown[]): KnownTool[] {
  return tools.flatMap((tool) => {
    const parsed = Declared.safeParse(tool);
    return parsed.success ? [parsed.data.function] : [];
  });
}

function corrective(tool: string, code: ErrorCode, text: string): Resolved {
  return { is: "corrective", tool: tool.slice(0, 256), code, text };
}

function misfit(tool: string, why: string, schema: Schema | null): Resolved {
  const takes = schema === null ? "" : `\nIt takes: ${canonicalText(schema).slice(0, 2_000)}`;
  return corrective(
    tool,
    "arguments-invalid",
    `${tool} was not called: its arguments do not fit.\n${why.slice(0, 1_000)}${takes}`,
  );
}

/** Resolves a call whose arguments were received as valid JSON of an object. */
export function resolveCall(call: LoggedCall, book: ToolBook): Resolved {
  const args = parseArguments(call.arguments);
  if (!args.ok) return misfit(call.name, args.detail, null);
  const declared = book.declared.find((tool) => tool.name === call.name);
  if (declared === undefined) return unknownTool(call.name);
  const problem = schemaProblem(declared.parameters, args.value);
  if (problem !== null) return misfit(call.name, problem, declared.parameters);
  return call.name === CALL_TOOL ? unwrap(args.value, book) : ready(call.name, args.value);
}

function unwrap(args: Arguments, book: ToolBook): Resolved {
  const name = String(args["name"]);
  const target = name === CALL_TOOL
    ? undefined
    : [...book.declared, ...(book.catalog ?? [])].find((tool) => tool.name === name);
  if (target === undefined && (book.catalog !== null || name === CALL_TOOL)) {
    return unknownTool(name);
  }
  const text = String(args["arguments"]).trim();
  const inner = parseArguments(text === "" ? "{}" : text);
  if (!inner.ok) return misfit(name, inner.detail, target?.parameters ?? null);
  const problem = target === undefined ? null : schemaProblem(target.parameters, inner.value);
  if (problem !== null) return misfit(name, problem, target?.parameters ?? null);
  return ready(name, inner.value);
}

function unknownTool(name: string): Resolved {
  const shown = name.slice(0, 100);
  return corrective(
    name,
    "tool-unknown",
    `There is no tool named ${shown}. Look for one with find_tool, then use call_tool.`,
  );
}

function ready(name: string, args: Arguments): Resolved {
  const tool = ToolName.safeParse(name);
  if (!tool.success) return unknownTool(name);
  const text = canonicalText(args);
  const bytes = encodeUtf8(text).length;
  if (bytes > MAX_ARGUMENT_BYTES) {
    return corrective(
      name,
      "arguments-too-large",
      `${name} was not called: its arguments have ${bytes} bytes, at most ${MAX_ARGUMENT_BYTES} are taken.`,
    );
  }
  return { is: "run", tool: tool.data, args, text };
}

/** Equal for calls that ask for the same thing, whichever way they are written. */
export function callKey(call: LoggedCall): string {
  const args = parseArguments(call.arguments);
  if (!args.ok) return `${call.name} ${call.arguments}`;
  const { name, arguments: text } = args.value;
  // A model may write anything there, also what has no text form.
  if (call.name !== CALL_TOOL || typeof name !== "string" || typeof text !== "string") {
    return `${call.name} ${canonicalText(args.value)}`;
  }
  const inner = parseArguments(text);
  return `${name} ${inner.ok ? canonicalText(inner.value) : text}`;
}
