// Breaks chat-template markup in text that is about to enter a prompt, so that no tokenizer takes
// the owner's, a page's or a tool's words for the start of a role, a call or a thought.
//
// 1. A backslash is put into every opener. Openers are looked for as the text reads after NFKC and
//    without invisible characters; the text itself is not normalised.
// 2. Text without openers comes back unchanged; text already broken comes back unchanged.
// 3. What has been sent is never changed by what follows: an opener that only comes about where two
//    parts meet is broken at the start of the later one.
// It is a wall against tokens, not against persuasion: what the text says is still untrusted.

const OPENER_NAMES = [
  "think|tool_call|tool_response|tools|function|parameter|invoke|arg_|s>|sop>|minimax:",
  // Older families and speech tokens, which no rule above covers.
  "start_of_turn|end_of_turn|bos>|eos>|<sys>>|tts_",
].join("|");
const BRACKET_NAMES = "INST|TOOL_|AVAILABLE_|SYSTEM_|ARGS|gMASK";
// Looking ahead lets openers overlap, as in `<|>`.
const OPENER = new RegExp(
  `(?=(<\\||\\|>|<\\/?(?:${OPENER_NAMES})|\\[\\/?(?:${BRACKET_NAMES})))`,
  "giu",
);
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?![\t\n\r])\p{Cc}/gu;
const MARK = "\\";

/** How a tokenizer that is as tolerant as can be might read the text. */
function folded(text: string): string {
  return text.normalize("NFKC").replace(UNSEEN, "");
}

/** Whether any opener is in the text; the memory write check refuses such a text. */
export function hasMarkup(text: string): boolean {
  return openersOf(text).length > 0;
}

/** Breaks every opener in one text. */
export function neutraliseMarkup(text: string): string {
  return neutraliseSegment([text]).join("");
}

/**
 * Breaks every opener in the concatenation of `parts`, those that span parts included. The result
 * has the same parts in the same order; a part depends on itself and those before it only.
 */
export function neutraliseSegment(parts: readonly string[]): string[] {
  const whole = parts.join("");
  const openers = openersOf(whole);
  if (openers.length === 0) return [...parts];
  const starts: number[] = [];
  let length = 0;
  for (const part of parts) {
    starts.push(length);
    length += part.length;
  }
  const marks = new Set(openers.map((opener) => markFor(opener, starts)));
  return parts.map((part, i) => withMarks(part, starts[i] ?? 0, marks));
}

type Opener = { readonly afterFirst: number; readonly end: number };

/**
 * Openers by their places in the original text, in UTF-16 units. Characters are folded one by one: to
 * fold them together could only compose a letter with an accent that follows, and so hide an opener
 * until more text came.
 */
function openersOf(whole: string): Opener[] {
  if (!/[<|[]/.test(folded(whole))) return [];
  let text = "";
  const ends: number[] = [];
  let at = 0;
  for (const char of whole) {
    at += char.length;
    const isPlain = char >= " " && char <= "~";
    const seen = isPlain ? char : folded(char);
    text += seen;
    for (let i = 0; i < seen.length; i++) ends.push(at);
  }
  return [...text.matchAll(OPENER)].map((match) => {
    const length = match[1]?.length ?? 1;
    return { afterFirst: ends[match.index] ?? 0, end: ends[match.index + length - 1] ?? 0 };
  });
}

/** The last start of a part inside the opener, else the place after its first character. */
function markFor(opener: Opener, starts: readonly number[]): number {
  const inside = starts.filter((start) => start >= opener.afterFirst && start < opener.end);
  return inside.at(-1) ?? opener.afterFirst;
}

function withMarks(part: string, start: number, marks: ReadonlySet<number>): string {
  let result = "";
  let from = 0;
  for (let i = 0; i < part.length; i++) {
    if (!marks.has(start + i)) continue;
    result += part.slice(from, i) + MARK;
    from = i;
  }
  return result + part.slice(from);
}
