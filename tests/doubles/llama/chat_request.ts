// A completion request, parsed and judged as the server judges it: which faults are 400, which are
// 500 for ever, what is ignored. Extra keys are ignored, null counts as absent.
import {
  isObject,
  type JsonObject,
  listOf,
  member,
  numberOf,
  parsed,
  textOf,
} from "./json_value.ts";

/** `args` is any JSON value; only some templates insist on an object. */
export type ChatCall = { readonly name: string; readonly args: unknown };

export type ChatMessage = {
  readonly role: string;
  /** Text parts joined by a newline; absent and null are the empty text. */
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly ChatCall[];
};

export type ChatRequest = {
  readonly body: JsonObject;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly JsonObject[];
  readonly toolChoice: "auto" | "none" | "required";
  readonly stream: boolean;
  /** -1 = any slot. */
  readonly idSlot: number;
  /** -1 = no limit; 0 still makes one token. */
  readonly limit: number;
  readonly kwargs: JsonObject;
  readonly thinkingAllowed: boolean;
  /** -1 = none; the value as sent, so N lets N-1 tokens through. */
  readonly reasoningBudget: number;
};

export type Fault = {
  readonly ok: false;
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly extra?: JsonObject;
};
export type Judged<T> = { readonly ok: true; readonly value: T } | Fault;

/** How much the two supported generations of the server differ here. */
export type Profile = "b10470" | "newer";

export const invalid = (message: string): Fault => ({
  ok: false,
  status: 400,
  type: "invalid_request_error",
  message,
});
export const serverError = (message: string): Fault => ({
  ok: false,
  status: 500,
  type: "server_error",
  message,
});

/** The request's meaning, or the error the server gives. Template exceptions come later. */
export function judgeChat(
  bodyText: string,
  profile: Profile,
  slots: number,
): Judged<ChatRequest> {
  const body = parsed(bodyText);
  if (!isObject(body)) {
    const message = "[json.exception.parse_error.101] parse error at line 1, column 1";
    return profile === "newer" ? invalid(message) : serverError(message);
  }
  const fault = fieldFault(body, slots) ?? optionFault(body) ?? messagesFault(body, profile);
  if (fault !== null) return fault;
  const messages: ChatMessage[] = [];
  for (const raw of listOf(body["messages"])) {
    const message = judgeMessage(isObject(raw) ? raw : {});
    if (!message.ok) return message;
    messages.push(message.value);
  }
  return { ok: true, value: request(body, messages) };
}

function request(body: JsonObject, messages: readonly ChatMessage[]): ChatRequest {
  const kwargs = member(body, "chat_template_kwargs");
  const known = isObject(kwargs) ? kwargs : {};
  const choice = textOf(body["tool_choice"], "auto");
  const limits = ["n_predict", "max_completion_tokens", "max_tokens"].map((k) => member(body, k));
  return {
    body,
    messages,
    tools: listOf(body["tools"]).filter(isObject),
    toolChoice: choice === "none" || choice === "required" ? choice : "auto",
    stream: body["stream"] === true,
    idSlot: Math.trunc(numberOf(body["id_slot"], -1)),
    limit: Math.trunc(numberOf(limits.find((v) => v !== undefined), -1)),
    kwargs: known,
    thinkingAllowed: known["enable_thinking"] !== false && body["reasoning_effort"] !== "none",
    reasoningBudget: numberOf(
      member(body, "reasoning_budget_tokens") ?? member(body, "thinking_budget_tokens"),
      -1,
    ),
  };
}

const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "n_predict", "id_slot"];
const FLAGS = ["stream", "return_progress", "timings_per_token", "cache_prompt"];

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}

function fieldFault(body: JsonObject, slots: number): Fault | null {
  for (const [keys, want] of [[NUMBERS, "number"], [FLAGS, "boolean"]] as const) {
    for (const key of keys) {
      const value = member(body, key);
      if (value === undefined || typeof value === want) continue;
      return invalid(
        `Field '${key}': [json.exception.type_error.302] type must be ${want}, but is ${
          typeName(value)
        }`,
      );
    }
  }
  const n = numberOf(member(body, "n") ?? member(body, "n_cmpl"), 1);
  if (n >= 1 && n <= slots) return null;
  return invalid(`Field 'n': Value must be between 1 <= value <= ${slots}, but got ${n}`);
}

function optionFault(body: JsonObject): Fault | null {
  const hasTools = listOf(body["tools"]).length > 0;
  const choice = member(body, "tool_choice");
  if (typeof choice === "string" && !["auto", "none", "required"].includes(choice)) {
    return invalid(`Invalid tool_choice: ${choice}`);
  }
  const grammar = member(body, "grammar");
  const format = member(body, "response_format");
  const constrained = grammar !== undefined || member(body, "json_schema") !== undefined ||
    (isObject(format) && format["type"] !== "text");
  if (hasTools && constrained) {
    return invalid("Cannot use custom grammar constraints with tools.");
  }
  if (hasTools && body["stream"] === true && member(body, "logprobs") !== undefined) {
    return invalid("logprobs is not supported with tools + stream");
  }
  if (typeof grammar === "string" && !grammar.includes("::=")) {
    return invalid("Failed to initialize samplers: failed to parse grammar");
  }
  const kwargs = body["chat_template_kwargs"];
  if (isObject(kwargs) && Object.hasOwn(kwargs, "enable_thinking")) {
    const value = kwargs["enable_thinking"];
    if (typeof value === "boolean") return null;
    return invalid(`invalid type for "enable_thinking" (expected boolean, got ${typeName(value)})`);
  }
  return null;
}

function messagesFault(body: JsonObject, profile: Profile): Fault | null {
  const messages = body["messages"];
  if (messages === undefined) return invalid("'messages' is required");
  if (!Array.isArray(messages)) return invalid("Expected 'messages' to be an array");
  for (const message of messages) {
    if (!isObject(message)) return serverError("Failed to parse messages: not an object");
    const hasContent = Object.hasOwn(message, "content");
    if (message["role"] !== "assistant" && !hasContent) {
      return invalid("All non-assistant messages must contain 'content'");
    }
    if (!hasContent && !Object.hasOwn(message, "tool_calls")) {
      return invalid("Assistant message must contain either 'content' or 'tool_calls'!");
    }
  }
  const continues = body["continue_final_message"] !== undefined &&
    body["continue_final_message"] !== false && body["continue_final_message"] !== null;
  if (continues && body["add_generation_prompt"] !== false) {
    return invalid("Cannot set both add_generation_prompt and continue_final_message to true.");
  }
  const [last, before] = [messages.at(-1), messages.at(-2)];
  if (!isObject(last) || last["role"] !== "assistant") return null;
  if (isObject(before) && before["role"] === "assistant") {
    return invalid("Cannot have 2 or more assistant messages at the end of the list.");
  }
  if (profile === "newer" && listOf(last["tool_calls"]).length > 0) {
    return invalid("Cannot continue an assistant message that contains tool calls.");
  }
  return null;
}

function judgeMessage(raw: JsonObject): Judged<ChatMessage> {
  if (typeof raw["role"] !== "string") return serverError("Failed to parse messages: no role");
  for (const key of ["reasoning_content", "tool_call_id", "name"]) {
    if (!Object.hasOwn(raw, key) || typeof raw[key] === "string") continue;
    return serverError(
      `Failed to parse messages: [json.exception.type_error.302] type must be string, but is ${
        typeName(raw[key])
      }`,
    );
  }
  const content = contentText(raw["content"]);
  if (!content.ok) return content;
  const calls: ChatCall[] = [];
  for (const rawCall of listOf(raw["tool_calls"])) {
    const call = judgeCall(rawCall);
    if (!call.ok) return call;
    calls.push(call.value);
  }
  return {
    ok: true,
    value: {
      role: raw["role"] === "developer" ? "system" : raw["role"],
      content: content.value,
      reasoning: textOf(raw["reasoning_content"]),
      calls,
    },
  };
}

function contentText(content: unknown): Judged<string> {
  if (!Array.isArray(content)) return { ok: true, value: textOf(content) };
  const texts: string[] = [];
  for (const part of content) {
    const type = isObject(part) ? part["type"] : undefined;
    if (type === "image_url") return serverError("image input is not supported by this model");
    if (type !== "text") return invalid("unsupported content[].type");
    texts.push(isObject(part) ? textOf(part["text"]) : "");
  }
  return { ok: true, value: texts.join("\n") };
}

function judgeCall(raw: unknown): Judged<ChatCall> {
  const fn = isObject(raw) ? raw["function"] : undefined;
  if (!isObject(fn) || typeof fn["name"] !== "string") {
    return serverError("Failed to parse messages: Missing tool call function name");
  }
  const given = fn["arguments"];
  const args = typeof given === "string" ? parsed(given) : given;
  if (args === undefined) {
    return serverError("Failed to parse tool call arguments as JSON: unexpected end of input");
  }
  return { ok: true, value: { name: fn["name"], args } };
}
