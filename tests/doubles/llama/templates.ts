// Chat templates of the double: one thinking style that drops old thoughts (`qwen3.5`), the same
// with thoughts kept (`qwen3.6`), and one without thinking whose calls are JSON (`qwen2.5`).
// Rendering is pure; a fault is a template exception, which the server answers with 500.
import {
  type ChatCall,
  type ChatMessage,
  type ChatRequest,
  type Judged,
  serverError,
} from "./chat_request.ts";
import { isObject, spacedJson, templateValue } from "./json_value.ts";

export type TemplateName = "qwen3.5" | "qwen3.6" | "qwen2.5";

export type Prompt = {
  readonly text: string;
  /** The text after the last message; the `<think>` in it decides how the answer is read. */
  readonly generation: string;
  /** `open`: the answer begins inside a think block. */
  readonly thinking: "open" | "closed" | "none";
  /** A trailing assistant message that the answer goes on with. */
  readonly prefill: { readonly content: string; readonly reasoning: string } | null;
};

const START = "<|im_start|>";
const END = "<|im_end|>\n";

/**
 * The prompt of a request.
 * @param keepThinking the server's own setting; the request's template argument wins over it
 * Fails with the template's exceptions: no real user message, a system message that is not first.
 */
export function renderPrompt(
  template: TemplateName,
  request: ChatRequest,
  keepThinking: "keep" | "drop",
): Judged<Prompt> {
  const { messages } = request;
  if (messages.slice(1).some((m) => m.role === "system") && template !== "qwen2.5") {
    return serverError("Jinja Exception: System message must be at the beginning.");
  }
  const lastUser = messages.findLastIndex((m) => m.role === "user" && !isToolText(m.content));
  if (lastUser < 0 && template !== "qwen2.5") {
    return serverError("Jinja Exception: No user query found in messages.");
  }
  const isBad = messages.some((m) => m.calls.some((c) => !isObject(c.args)));
  if (isBad && template !== "qwen2.5") {
    return serverError("Jinja Exception: the arguments of a tool call are not a mapping");
  }
  const tail = messages.at(-1);
  const prefill = tail?.role === "assistant" ? tail : null;
  const kept = keepsAll(template, request, keepThinking);
  let text = systemBlock(template, request);
  messages.forEach((message, i) => {
    if (message === prefill || (message.role === "system" && i === 0)) return;
    const showThought = kept || i > lastUser;
    text += block(template, messages, i, message, showThought);
  });
  return { ok: true, value: withGeneration(template, request, text, prefill) };
}

function isToolText(content: string): boolean {
  const text = content.trim();
  return text.startsWith("<tool_response>") && text.endsWith("</tool_response>");
}

function keepsAll(template: TemplateName, request: ChatRequest, server: "keep" | "drop"): boolean {
  if (template !== "qwen3.6") return false;
  const { kwargs, body } = request;
  const asked = kwargs["preserve_thinking"] ?? kwargs["preserve_reasoning"] ??
    body["preserve_reasoning"];
  return typeof asked === "boolean" ? asked : server === "keep";
}

function systemBlock(template: TemplateName, request: ChatRequest): string {
  const first = request.messages[0];
  const own = first?.role === "system" ? trimmed(template, first.content) : "";
  const tools = request.tools.map((tool) => `\n${spacedJson(tool)}`).join("");
  const list = tools === "" ? "" : `# Tools\n\n<tools>${tools}\n</tools>\n\n${howToCall(template)}`;
  if (template === "qwen2.5") {
    const system = own === "" ? "You are a helpful assistant." : own;
    return `${START}system\n${[system, list].filter((t) => t !== "").join("\n\n")}${END}`;
  }
  const whole = [list, own].filter((t) => t !== "").join("\n\n");
  return whole === "" ? "" : `${START}system\n${whole}${END}`;
}

function howToCall(template: TemplateName): string {
  return template === "qwen2.5"
    ? 'To call one, write {"name": NAME, "arguments": OBJECT} between tool_call tags.'
    : "To call one, write its name and parameters in function and parameter tags.";
}

function trimmed(template: TemplateName, text: string): string {
  return template === "qwen2.5" ? text : text.trim();
}

function block(
  template: TemplateName,
  messages: readonly ChatMessage[],
  i: number,
  message: ChatMessage,
  showThought: boolean,
): string {
  if (message.role === "tool") {
    const opens = messages[i - 1]?.role !== "tool" ? `${START}user` : "";
    const closes = messages[i + 1]?.role !== "tool" ? END : "";
    const text = trimmed(template, message.content);
    return `${opens}\n<tool_response>\n${text}\n</tool_response>${closes}`;
  }
  if (message.role !== "assistant") {
    return `${START}${message.role}\n${trimmed(template, message.content)}${END}`;
  }
  return `${START}assistant\n${assistantText(template, message, showThought)}${END}`;
}

function assistantText(template: TemplateName, message: ChatMessage, showThought: boolean): string {
  const content = trimmed(template, message.content);
  const thought = template !== "qwen2.5" && showThought
    ? `<think>\n${message.reasoning.trim()}\n</think>\n\n`
    : "";
  const calls = message.calls.map((c, i) =>
    callGap(template, i, content !== "") + callText(template, c)
  );
  return thought + content + calls.join("");
}

/** What stands between the text and its first call, and between two calls. */
export function callGap(template: TemplateName, index: number, hasContent: boolean): string {
  if (index > 0) return "\n";
  if (!hasContent) return "";
  return template === "qwen2.5" ? "\n" : "\n\n";
}

function callText(template: TemplateName, call: ChatCall): string {
  if (template === "qwen2.5") {
    return `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${
      spacedJson(call.args)
    }}\n</tool_call>`;
  }
  const parameters = Object.entries(isObject(call.args) ? call.args : {}).map(([key, value]) =>
    `<parameter=${key}>\n${templateValue(value)}\n</parameter>\n`
  );
  return `<tool_call>\n<function=${call.name}>\n${parameters.join("")}</function>\n</tool_call>`;
}

function withGeneration(
  template: TemplateName,
  request: ChatRequest,
  text: string,
  prefill: ChatMessage | null,
): Prompt {
  const wanted = prefill !== null || request.body["add_generation_prompt"] !== false;
  const start = `${START}assistant\n`;
  if (!wanted) return { text, generation: "", thinking: "none", prefill: null };
  if (template === "qwen2.5") {
    const own = prefill?.content ?? "";
    return { text: text + start + own, generation: start, thinking: "none", prefill };
  }
  const open = `${start}<think>\n`;
  if (prefill !== null) {
    const stillOpen = prefill.reasoning !== "" && prefill.content === "";
    const thought = prefill.reasoning === ""
      ? "<think>\n\n</think>\n\n"
      : `<think>\n${prefill.reasoning}${stillOpen ? "" : "\n</think>\n\n"}`;
    const thinking = stillOpen ? "open" : "closed";
    return { text: text + start + thought + prefill.content, generation: open, thinking, prefill };
  }
  const generation = request.thinkingAllowed ? open : `${start}<think>\n\n</think>\n\n`;
  const thinking = request.thinkingAllowed ? "open" : "closed";
  return { text: text + generation, generation, thinking, prefill: null };
}

/** What `/props` says of the template. */
export function capabilities(template: TemplateName): Record<string, boolean> {
  return {
    supports_object_arguments: true,
    supports_parallel_tool_calls: true,
    supports_preserve_reasoning: template === "qwen3.6",
    supports_reasoning_effort: false,
    supports_string_content: true,
    supports_system_role: true,
    supports_tool_calls: true,
    supports_tools: true,
    supports_typed_content: false,
  };
}

/** A stand-in for the template's source: fixed text, so that its hash is. */
export function templateSource(template: TemplateName): string {
  const keeps = template === "qwen3.6" ? " or preserve_thinking" : "";
  const thinks = template === "qwen2.5" ? "" : `{%- if loop.index0 > last_query${keeps} %}<think>`;
  return `{#- ${template} -#}{%- for message in messages %}${thinks}{{ message.content }}{%- endfor %}`;
}
