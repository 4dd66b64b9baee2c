// The last frame of a tool, read strictly: it must have the agreed form and agree with the output that
// came. Whatever else a tool says here is a failure of the tool.
import { z } from "zod";
import { decodeUtf8, parseJson } from "../../../shared/wire/codec.ts";

const Succeeded = z.strictObject({
  ok: z.literal(true),
  bytes: z.int().min(0),
  note: z.string().max(1_000),
});
const Failed = z.strictObject({
  ok: z.literal(false),
  code: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/),
  message: z.string().min(1).max(1_000),
});
const ToolResult = z.discriminatedUnion("ok", [Succeeded, Failed]);
export type ToolResult = z.output<typeof ToolResult>;

/** The result, or one sentence on why there is none. `bytes` is what came before it. */
export function readResult(frame: Uint8Array | null, bytes: number): ToolResult | string {
  if (frame === null) return "The tool ended without a result";
  const text = decodeUtf8(frame);
  const value = text.ok ? parseJson(text.value) : text;
  const parsed = value.ok ? ToolResult.safeParse(value.value) : null;
  if (parsed === null || !parsed.success) return "The tool's result has another form";
  if (parsed.data.ok && parsed.data.bytes !== bytes) {
    return `The tool says it sent ${parsed.data.bytes} bytes, but ${bytes} came`;
  }
  return parsed.data;
}
