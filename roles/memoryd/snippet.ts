// The part of a text that shows why it was found: at most 600 characters, cut between words where the
// script has spaces, and never inside a character as a reader sees it.
import { folded, type Terms, tokens } from "./words.ts";

const MAX_CHARACTERS = 600;
const BEFORE = 160;
/** How far a cut may move to reach a space, in UTF-16 units. */
const REACH = 40;
const ELLIPSIS = "…";

/** A snippet of `text` around the first place where many of the terms stand together. */
export function snippet(text: string, terms: Terms): string {
  if ([...text].length <= MAX_CHARACTERS) return text;
  const from = cutNear(text, bestPlace(text, terms) - BEFORE);
  // Code points never outnumber UTF-16 units, so a bound in units holds for both.
  const to = cutNear(text, from + MAX_CHARACTERS - REACH - 2);
  const middle = text.slice(from, to).trim();
  return (from > 0 ? ELLIPSIS : "") + middle + (to < text.length ? ELLIPSIS : "");
}

/** Where a window begins that holds the most different terms; 0 when none is found. */
function bestPlace(text: string, terms: Terms): number {
  const heads = terms.map((phrase) => stem(phrase[0] ?? ""));
  const found: { at: number; term: number }[] = [];
  for (const match of text.matchAll(/[\p{L}\p{N}\p{M}\p{Extended_Pictographic}]+/gu)) {
    const word = folded(match[0]);
    const first = tokens(word).map(stem);
    heads.forEach((head, term) => {
      if (!first.includes(head)) return;
      // Folding may have made the word longer than it is written.
      const inside = Math.min(Math.max(0, word.indexOf(head)), match[0].length);
      found.push({ at: match.index + inside, term });
    });
  }
  let best = 0;
  let most = 0;
  let end = 0;
  for (let start = 0; start < found.length; start++) {
    const at = found[start]?.at ?? 0;
    while (end < found.length && (found[end]?.at ?? 0) < at + MAX_CHARACTERS - BEFORE) {
      end++;
    }
    const count = new Set(found.slice(start, end).map((one) => one.term)).size;
    if (count > most) [best, most] = [at, count];
  }
  return best;
}

/** Near enough to what the index does with English endings; used only to place the window. */
function stem(token: string): string {
  return token.length > 5 ? token.replace(/(?:ing|ed|es|s|e|ly|er)$/, "") : token.replace(/s$/, "");
}

/** A place near `at` where the text may be cut: at a space little after it, or before a character. */
function cutNear(text: string, at: number): number {
  if (at <= 0 || at >= text.length) return Math.max(0, Math.min(at, text.length));
  const space = text.slice(at, at + REACH).search(/\s/);
  if (space >= 0) return at + space;
  const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text).containing(at)?.index ?? at;
}
