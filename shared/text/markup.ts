// Breaks chat-template markup in text that is about to enter a prompt, so that no tokenizer takes
// the owner's, a page's or a tool's words for the start of a role, a call or a thought.
//
// 1. A backslash is put into every opener. Openers are looked for as the text reads after NFKC and
//    without invisible characters; the text itself is not normalised.
// 2. Text without openers comes back unchanged; text already broken comes back unchanged.
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

/** Breaks every opener in a text. Texts that will stand side by side are joined first. */
export function neutraliseMarkup(text: string): string {
  let result = "";
  let from = 0;
  for (const at of new Set(openersOf(text))) {
    result += text.slice(from, at) + MARK;
    from = at;
  }
  return result + text.slice(from);
}

/**
 * Where the first character of each opener ends in the original text, in UTF-16 units. Characters are
 * folded one by one: to fold them together could only compose a letter with an accent that follows, and
 * so hide an opener.
 */
function openersOf(whole: string): number[] {
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
  return [...text.matchAll(OPENER)].map((match) => ends[match.index] ?? 0);
}
