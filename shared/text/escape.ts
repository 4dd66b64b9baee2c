// Makes any text safe to look at: in an approval, on a terminal, in a log line.
//
// 1. Nothing is deleted: different texts stay different, as the escape character is escaped too.
// 2. Whatever is invisible, reorders its neighbours or is not assigned is shown as `\u{HEX}`.
// The set of unassigned points moves with the engine's Unicode version; tests name code points.

const UNUSUAL =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}]|[\u2800\u{1D159}]|(?! )\p{Zs}/u;
const ESCAPED = new RegExp(`\\\\|${UNUSUAL.source}`, "gu");

function escapeOne(char: string): string {
  return char === "\\" ? "\\\\" : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
}

/**
 * Escapes a text for display; injective. As a `line` the result has no line feed or tab; as `lines`
 * those two pass, so only fields that are declared to have several lines may be shown that way.
 */
export function escapeForDisplay(text: string, shape: "line" | "lines"): string {
  if (shape === "line") return text.replace(ESCAPED, escapeOne);
  return text.replace(ESCAPED, (char) => char === "\n" || char === "\t" ? char : escapeOne(char));
}

/**
 * For prose on a terminal, and for text that is escaped already: as `lines`, but the backslash stays
 * as it is and so do the two joiners that ordinary emoji need. Not injective, so never for a choice.
 */
export function escapeProse(text: string): string {
  return text.replace(ESCAPED, (char) => PROSE.includes(char) ? char : escapeOne(char));
}

const PROSE = ["\n", "\t", "\\", "\u200d", "\ufe0f"];

/** JSON text with every unusual character inside its strings written as `\\uXXXX`: the same value. */
export function escapeJson(json: string): string {
  return json.replace(new RegExp(UNUSUAL.source, "gu"), (char) => {
    const units = Array.from({ length: char.length }, (_, i) => char.charCodeAt(i));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  });
}

/** Whether a text has none of the characters that are shown escaped, the backslash aside. */
export function isPlainText(text: string): boolean {
  return !UNUSUAL.test(text);
}

const SCRIPTS = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u];

/** What a reader should be warned of although it is shown as it is; empty for ordinary text. */
export function oddities(text: string): string[] {
  const found: string[] = [];
  if (/\p{M}{3}/u.test(text)) found.push("more than two combining marks in a row");
  if (/ {8}/.test(text)) found.push("a run of eight or more spaces");
  const words = text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const isMixed = (word: string) => SCRIPTS.filter((script) => script.test(word)).length > 1;
  if (words.some(isMixed)) found.push("a word that mixes alphabets");
  return found;
}
