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
      return `Searching for ${textOf(args["pattern"])} gave:\n\n${quoted}`;
    case "write_file":
      return `${textOf(args["path"], "The file")} is written. The tool answered:\n\n${quoted}`;
    case "find_tool":
      return `These tools fit:\n\n${quoted}`;
    default:
      return `${name} answered:\n\n${quoted}`;
  }
}

/** A refusal or failure says so at the start, by a word or by a code with a hyphen. */
function isRefusal(text: string): boolean {
  const start = text.split("\n").slice(0, 4).join("\n");
  return /\b(?:refused|denied|not allowed|not granted|failed|unavailable|expired|invalid)\b/i
    .test(start);
}

const HEADING =
  /^(?:[[(<{#=\-*~`>|].*|(?:data|result|source|label|class|tool|from|trust|untrusted|status)\b.*|.*:)$/i;

/** The text without what stands around the data; the whole text when nothing would be left. */
function withoutHeading(text: string): string {
  const lines = text.trim().split("\n");
  const blank = lines.findIndex((line) => line.trim() === "");
  const head = blank < 0 ? lines.slice(0, 1) : lines.slice(0, blank);
  const isHead = head.length > 0 && head.length < 8 && head.every((l) => HEADING.test(l.trim()));
  const kept = isHead ? lines.slice(head.length) : lines;
  while (
    kept.length > 1 &&
    /^(?:[<\]=\-~`]{1,}.*(?:end|data|result).*|`{3,}|-{3,}|<\/.*>)$/i.test(kept.at(-1) ?? "")
  ) {
    kept.pop();
  }
  const rest = kept.join("\n").trim();
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
