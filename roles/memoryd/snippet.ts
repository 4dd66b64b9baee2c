// The part of a text that shows why it was found: at most 600 characters, cut between words where the
// script has spaces, and never inside a character as a reader sees it.
import { folded, type Terms, tokens } from "./words.ts";

export const MAX_SNIPPET_CHARACTERS = 600;
const BEFORE = 160;
/** How far a cut may move to reach a space, in UTF-16 units. */
const REACH = 40;
const ELLIPSIS = "…";

/** A snippet of `text` around the first place where many of the terms stand together. */
export function snippet(text: string, terms: Terms): string {
  const length = [...text].length;
  if (length <= MAX_SNIPPET_CHARACTERS) return text;
  const hit = bestPlace(text, terms);
  const from = cutNear(text, Math.max(0, hit - BEFORE));
  // Code points never outnumber UTF-16 units, so a bound in units holds for both.
  const to = cutNear(text, Math.min(text.length, from + MAX_SNIPPET_CHARACTERS - REACH - 2));
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
      const inside = first.indexOf(head);
      if (inside < 0) return;
      found.push({ at: match.index + Math.max(0, word.indexOf(head)), term });
    });
  }
  let best = 0;
  let most = 0;
  let end = 0;
  for (let start = 0; start < found.length; start++) {
    const at = found[start]?.at ?? 0;
    while (end < found.length && (found[end]?.at ?? 0) < at + MAX_SNIPPET_CHARACTERS - BEFORE) {
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

/** A place at or little after `at` where the text may be cut. */
function cutNear(text: string, at: number): number {
  if (at <= 0 || at >= text.length) return Math.max(0, Math.min(at, text.length));
  const space = text.slice(at, at + REACH).search(/\s/);
  if (space >= 0) return at + space;
  const start = startNear(text, at);
  const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
  let cut = start;
  for (const { index, segment } of segmenter.segment(text.slice(start, at + REACH))) {
    if (start + index > at) break;
    cut = start + index;
    if (cut + segment.length === at) return at;
  }
  return cut;
}

/** A place before `at` where a character surely begins. A text may be very long, so it is not far. */
function startNear(text: string, at: number): number {
  let start = Math.max(0, at - 10 * REACH);
  const space = text.slice(start, at).search(/\s/);
  if (space >= 0) return start + space;
  while (
    start > 0 && /^[\p{M}\p{Cf}\p{Emoji_Modifier}\uDC00-\uDFFF]/u.test(text.slice(start, start + 2))
  ) {
    start--;
  }
  return start;
}
