// How the rehearsal model reads a tool's result back. The harness puts a heading around what a tool
// returned; which one is not this program's business, so whatever looks like one is left out.
import type { ChatCall } from "./chat_request.ts";
import { isObject, parsed, textOf } from "./json_value.ts";

const SHOWN_LINES = 12;
const SHOWN_CHARS = 1200;

/** An answer in words to what the tool returned. */
export function answerToResult(owner: string, asked: ChatCall | undefined, text: string): string {
  const given = isObject(asked?.args) ? asked.args : {};
  const isInner = asked?.name === "call_tool";
  const name = isInner ? textOf(given["name"]) : asked?.name ?? "the tool";
  const inner = isInner ? parsed(textOf(given["arguments"])) : given;
  const args = isObject(inner) ? inner : {};
  const body = withoutHeading(text);
  const quoted = quote(body);
  if (isRefusal(text)) return `${name} did not do it. It was answered:\n\n${quoted}`;
  switch (name) {
    case "memory":
      return `Done: ${textOf(args["text"], owner)}\n\nThe memory answered:\n\n${quoted}`;
    case "recall":
      return body === ""
        ? `I find nothing about ${textOf(args["query"])}.`
        : `This is what I find about ${textOf(args["query"])}:\n\n${quoted}`;
    case "clock":
      return `The clock says:\n\n${quoted}`;
    case "read_file":
      return `${textOf(args["path"], "The file")} begins so:\n\n${quoted}`;
    case "list_dir":
      return `In ${textOf(args["path"], "the folder")} there is:\n\n${quoted}`;
    case "search_files":
      return `Searching for ${textOf(args["text"])} gave:\n\n${quoted}`;
    case "write_file":
      return `${textOf(args["path"], "The file")} is written. The tool answered:\n\n${quoted}`;
    case "find_tool":
      return `These tools fit:\n\n${quoted}`;
    default:
      return `${name} answered:\n\n${quoted}`;
  }
}

/** A first line that says the call did not do its work. */
const REFUSAL =
  /^(?:\S+ (?:was not (?:run|called)|failed|refused|denied)\b|it is not known|there is no tool|error\b|refused\b|denied\b|\S*(?:-|_)(?:unavailable|denied|refused|invalid|expired)\b)/i;

function isRefusal(text: string): boolean {
  return REFUSAL.test(text.trim().split("\n")[0] ?? "");
}

/** `Result of ...:`, or a whole first paragraph in brackets. */
const HEADING = /^(?:(?:result|output|data)\b.*:|[[(<].*[\])>]|-{3,}.*)$/i;

/** The text without the heading around it; the whole text when nothing would be left. */
function withoutHeading(text: string): string {
  const lines = text.trim().split("\n");
  const hasHeading = HEADING.test((lines[0] ?? "").trim()) && !/^\[\d+\]/.test(lines[0] ?? "");
  const rest = (hasHeading ? lines.slice(1) : lines).join("\n").trim();
  return rest === "" ? text.trim() : rest;
}

function quote(text: string): string {
  if (text === "") return "> (nothing)";
  const lines = text.slice(0, SHOWN_CHARS).split("\n");
  const shown = lines.slice(0, SHOWN_LINES).map((line) => `> ${line}`.trimEnd());
  const total = text.split("\n").length;
  const more = total > shown.length
    ? [`> ... (${total - shown.length} more ${total - shown.length === 1 ? "line" : "lines"})`]
    : text.length > SHOWN_CHARS
    ? ["> ..."]
    : [];
  return [...shown, ...more].join("\n");
}
