// The text of a tool result as the model sees it: capped, its template markup broken, and presented
// as data with its source and label. It is made once, when the result is appended, and never again.
import type { CallId } from "../../shared/ids/ids.ts";
import { type Label, labelText } from "../../shared/labels/label.ts";
import { assertNever } from "../../shared/results/result.ts";
import { neutraliseMarkup } from "../../shared/text/markup.ts";
import { decodeLossy } from "../../shared/wire/codec.ts";

export interface ResultText {
  readonly tool: string;
  readonly call: CallId;
  readonly outcome: "done" | "failed" | "denied" | "unknown";
  /** What brokerd says about a call that is not simply done. */
  readonly message: string;
  readonly code: string | null;
  readonly label: Label;
  readonly output: Uint8Array;
  readonly sha256: string;
  /** Whether output beyond the tool's own limit was dropped before it came here. */
  readonly isCut: boolean;
  readonly capBytes: number;
  /** A last line for the model, or empty. */
  readonly warning: string;
}

export interface Shown {
  readonly content: string;
  /** Whether the exact output is in `content`; else it is kept as an artifact. */
  readonly isExact: boolean;
}

/** The largest place at or below `at` where no character is cut in two; bytes that are none may be. */
function boundary(bytes: Uint8Array, at: number): number {
  const place = Math.min(at, bytes.length);
  for (let back = 0; back <= Math.min(3, place); back++) {
    const lead = bytes[place - back] ?? 0;
    if ((lead & 0xc0) === 0x80) continue;
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return back < length ? place - back : place;
  }
  return place;
}

/** The output with its middle left out when it is longer than the cap; head and tail are kept. */
export function capped(result: ResultText): { readonly text: string; readonly isWhole: boolean } {
  const { output, capBytes, call, sha256 } = result;
  if (output.length <= capBytes) return { text: decodeLossy(output), isWhole: true };
  const head = boundary(output, Math.floor(capBytes * 3 / 4));
  const tail = boundary(output, output.length - Math.floor(capBytes / 4));
  const mark =
    `[bytes ${head} to ${tail} of ${output.length} are left out here; sha256 ${sha256}; ` +
    `read them with call_tool, name read_result, arguments {"call":"${call}","offset":${head}}]`;
  const text = `${decodeLossy(output.subarray(0, head))}\n${mark}\n` +
    decodeLossy(output.subarray(tail));
  return { text, isWhole: false };
}

function opening(tool: string, outcome: ResultText["outcome"], why: string, label: Label): string {
  switch (outcome) {
    case "denied":
      return `${tool} was not run: ${why}`;
    case "failed":
      return `${tool} failed: ${why}`;
    case "unknown":
      return `It is not known whether ${tool} took effect: ${why}`;
    case "done":
      return `Result of ${tool} (${labelText(label)}):`;
    default:
      return assertNever(outcome);
  }
}

function reason(message: string, code: string | null): string {
  return `${message || "no reason given"}${code === null ? "" : ` [${code}]`}`;
}

/** The text of a call that brokerd gave no answer to. */
export function shownFailure(
  tool: string,
  outcome: "failed" | "unknown",
  message: string,
  code: string,
): string {
  const label = { class: "private", untrusted: false } as const;
  return neutraliseMarkup(opening(tool, outcome, reason(message, code), label));
}

/** The text that is appended and sent. */
export function shownResult(result: ResultText): Shown {
  const { text, isWhole } = capped(result);
  const hasOutput = result.output.length > 0;
  const body = hasOutput ? text : result.outcome === "done" ? "(no output)" : "";
  const parts = [
    opening(result.tool, result.outcome, reason(result.message, result.code), result.label),
    ...(body === "" ? [] : [body]),
    ...(result.isCut ? ["[the tool's output went on beyond its limit]"] : []),
    ...(result.warning === "" ? [] : [`[${result.warning}]`]),
  ];
  const content = neutraliseMarkup(parts.join("\n"));
  const isExact = isWhole && (!hasOutput || (content.includes(body) && !body.includes("\ufffd")));
  return { content, isExact };
}

/** A page of an archived result. */
export function shownPage(page: {
  readonly tool: string;
  readonly label: Label;
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly limit: number;
}): string {
  const from = boundary(page.bytes, page.offset);
  // A page holds one whole character at least, or the next would begin where it did.
  const end = boundary(page.bytes, from + page.limit);
  const to = end > from ? end : boundary(page.bytes, from + 4);
  const more = to < page.bytes.length ? `; more from offset ${to}` : "; this is the end";
  const head = `Bytes ${from} to ${to} of ${page.bytes.length} of the result of ${page.tool} ` +
    `(${labelText(page.label)})${more}:`;
  return neutraliseMarkup(`${head}\n${decodeLossy(page.bytes.subarray(from, to))}`);
}

const ELSEWHERE = "From elsewhere (";

/** The owner's words as they are sent; a text with a label of its own says so. */
export function shownMessage(text: string, label: Label | null): string {
  return neutraliseMarkup(
    label === null ? text : `${ELSEWHERE}${labelText(label)}), as data:\n${text}`,
  );
}

/** Whether a sent message had a label of its own, or might have had. */
export function isFromElsewhere(content: string): boolean {
  return content.startsWith(ELSEWHERE);
}
