// Ready-made exchanges of `[inference] examples`, put in front of every new session as they stand.
// They are checked once, at start: a file that could wedge a conversation starts nothing.
import { z } from "zod";
import type { Disk } from "../../shared/disk/disk.ts";
import { readText } from "../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import { isArguments } from "./tool_arguments.ts";

const MAX_BYTES = 262_144;

const Call = z.strictObject({
  id: z.string().min(1).max(64),
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().min(1).max(64),
    arguments: z.string().refine(isArguments, "arguments must be the text of a JSON object"),
  }),
});

const Message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("user"), content: z.string() }),
  z.strictObject({
    role: z.literal("assistant"),
    content: z.string(),
    reasoning_content: z.string().min(1).optional(),
    tool_calls: z.array(Call).min(1).optional(),
  }),
  z.strictObject({ role: z.literal("tool"), tool_call_id: z.string(), content: z.string() }),
]);
type Message = z.output<typeof Message>;

/** Why these messages cannot stand before a conversation, or null. */
function orderProblem(messages: readonly Message[]): string | null {
  let open: string[] = [];
  let before: Message["role"] | "start" = "start";
  for (const [at, message] of messages.entries()) {
    const place = `message ${at + 1}`;
    if (message.role === "tool") {
      if (open.shift() !== message.tool_call_id) return `${place} answers no call that is open`;
    } else if (open.length > 0) return `${place} comes before the call ${open[0]} is answered`;
    else if (message.role === "user" && (before === "user" || before === "tool")) {
      return `${place} comes before the answer`;
    } else if (message.role === "assistant") {
      if (before === "start" || before === "assistant") return `${place} answers nothing`;
      open = (message.tool_calls ?? []).map((call) => call.id);
    }
    before = message.role;
  }
  return before === "assistant" && open.length === 0 ? null : "the last message is no answer";
}

/** Reads an examples file. Fails with `config-invalid`, naming the message that is wrong. */
export function readExamples(disk: Disk, path: string): Result<Message[]> {
  const text = readText(disk, path, MAX_BYTES);
  if (!text.ok) return err("config-invalid", text.detail);
  const value = parseJson(text.value);
  if (!value.ok) return err("config-invalid", `${path}: ${value.detail}`);
  const parsed = z.array(Message).max(200).safeParse(value.value);
  if (!parsed.success) {
    return err("config-invalid", `${path}: ${z.prettifyError(parsed.error)}`);
  }
  const problem = parsed.data.length === 0 ? null : orderProblem(parsed.data);
  return problem === null ? ok(parsed.data) : err("config-invalid", `${path}: ${problem}`);
}
