// Words: how text is folded and cut for the index, and how a question becomes an FTS5 query.
//
// 1. Text and question go through the same folding and the same cutting.
// 2. Scripts without spaces are cut into single characters and asked for as phrases, so a word is
//    found whatever a dictionary makes of its surroundings.
// 3. A query is made of quoted tokens and OR alone. A token is letters, marks, digits or one symbol;
//    no character of FTS5's grammar can be in it.
import { isoTime } from "../../shared/clock/clock.ts";
import { baseForm, STOP_WORDS } from "./english.ts";

const SCRIPTS = "Han|Hiragana|Katakana|Hangul|Thai|Lao|Khmer|Myanmar";
const UNSPACED = SCRIPTS.split("|").map((name) => `\\p{Script=${name}}`).join("");
const TOKEN = new RegExp(
  `(?=[\\p{L}\\p{N}])[${UNSPACED}]\\p{M}*|\\p{Extended_Pictographic}|\\p{Regional_Indicator}|(?:(?![${UNSPACED}])[\\p{L}\\p{N}]\\p{M}*)+`,
  "gu",
);
/** Marks that only vary a letter; in other scripts a mark can be a vowel. */
const VARIANT = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])\p{M}+/gu;
const MAX_TOKEN_CHARACTERS = 64;
const MAX_TERMS = 32;

/** One form for width, case and accents. */
export function folded(text: string): string {
  return text.normalize("NFKC").toLowerCase().normalize("NFD").replace(VARIANT, "$1")
    .replace(/ß/g, "ss").normalize("NFC");
}

/** The tokens of a text in order, folded. */
export function tokens(text: string): string[] {
  const found = folded(text).match(TOKEN) ?? [];
  return found.map((token) => baseForm(token.slice(0, MAX_TOKEN_CHARACTERS).toWellFormed()));
}

/** The parts of names that are written as one word: `parse`, `config` of `parseConfig`. */
export function nameParts(text: string): string[] {
  const names = (text.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) =>
    word.length <= MAX_TOKEN_CHARACTERS && /\p{Ll}\p{Lu}/u.test(word)
  );
  return tokens(names.join(" ").replace(/\p{Ll}(?=\p{Lu})|\p{Lu}(?=\p{Lu}\p{Ll})/gu, "$& "));
}

const MONTHS =
  "january february march april may june july august september october november december"
    .split(" ");

/** What people call the day of a wall time (UTC): `8 08 may 05 2023`. */
export function dayWords(unixMs: number): string {
  const [year, month = "", day = ""] = isoTime(unixMs).slice(0, 10).split("-");
  return `${Number(day)} ${day} ${MONTHS[Number(month) - 1]} ${month} ${year}`;
}

/** What a question asks for: each term is a phrase of one or more tokens. */
export type Terms = readonly (readonly string[])[];

/** The terms of a question, stop words dropped while others remain; at most 32. */
export function termsOf(question: string): Terms {
  const segmenter = new Intl.Segmenter("en", { granularity: "word" });
  const terms = new Map<string, string[]>();
  for (const { segment } of segmenter.segment(folded(question))) {
    // An apostrophe ends a word; other signs inside one (3.14, q3.txt) hold it together.
    for (const part of segment.split(/['’]/)) {
      const phrase = tokens(part);
      if (phrase.length > 0) terms.set(phrase.join(" "), phrase);
    }
  }
  const telling = [...terms].filter(([key]) => !STOP_WORDS.has(key));
  const used = telling.length > 0 ? telling : [...terms];
  return used.slice(0, MAX_TERMS).map(([, phrase]) => phrase);
}

/** The FTS5 query that finds any of the terms; null when there is none. */
export function matchQuery(terms: Terms): string | null {
  if (terms.length === 0) return null;
  return terms.map((phrase) => `"${phrase.join(" ")}"`).join(" OR ");
}
