// The double's tokenizer: pure, deterministic, reversible. An ordinary token is at most six bytes
// and its id encodes them, so there is no vocabulary to keep. A special token is always one token,
// so cutting a text at one never changes the tokens on either side; the same holds for a newline.
// A four-byte character is two tokens, so generated text can stop inside a character.

/** Split into text unless special tokens are parsed. */
const CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
/** Recognised even in plain text, like the tags a vocabulary defines for its users. */
const TAGS = [
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
];
const FIRST_SPECIAL = 50_257;
const FIRST_ORDINARY = 100_000;
const MAX_BYTES = 6;
const BASE = 257;

const SPECIAL = [...CONTROL, ...TAGS];
const idOfSpecial = new Map(SPECIAL.map((text, i) => [text, FIRST_SPECIAL + i] as const));
const encoder = new TextEncoder();
const ORDINARY = / ?\p{L}+|\p{N}|\n| ?[^\p{L}\p{N}\s\u{10000}-\u{10FFFF}]{1,3}|[^\S\n]+|./gsu;
const AT_SPECIAL = new RegExp(
  `(${SPECIAL.join("|").replaceAll("<|", "<\\|").replaceAll("|>", "\\|>")})`,
);
const AT_TAG = new RegExp(`(${TAGS.join("|")})`);

export const END_TOKEN_TEXT = "<|im_end|>";
export const END_TOKEN = idOfSpecial.get(END_TOKEN_TEXT) ?? 0;
export const END_THINK_TOKEN = idOfSpecial.get("</think>") ?? 0;

export type SpecialParsing = "control-and-tags" | "tags-only";

/** Token ids of `text`; `tags-only` is the wire's `parse_special: false`. */
export function tokenize(text: string, parsing: SpecialParsing = "control-and-tags"): number[] {
  const parts = text.split(parsing === "tags-only" ? AT_TAG : AT_SPECIAL);
  return parts.flatMap((part, i) => {
    if (i % 2 === 1) return [idOfSpecial.get(part) ?? 0];
    return [...part.matchAll(ORDINARY)].flatMap(([piece]) => chunks(piece).map(idOfBytes));
  });
}

/** The piece's bytes in runs of at most six, cut between characters except inside long ones. */
function chunks(piece: string): Uint8Array[] {
  const out: Uint8Array[] = [];
  let run: number[] = [];
  const flush = () => {
    if (run.length > 0) out.push(Uint8Array.from(run));
    run = [];
  };
  for (const character of piece) {
    const bytes = encoder.encode(character);
    if (bytes.length === 4) {
      flush();
      out.push(bytes.slice(0, 2), bytes.slice(2));
      continue;
    }
    if (run.length + bytes.length > MAX_BYTES) flush();
    run.push(...bytes);
  }
  flush();
  return out;
}

function idOfBytes(bytes: Uint8Array): number {
  return FIRST_ORDINARY + bytes.reduceRight((sum, byte) => sum * BASE + byte + 1, 0);
}

/** The bytes one token stands for; an id that no text yields stands for nothing. */
export function bytesOfToken(id: number): Uint8Array {
  const special = SPECIAL[id - FIRST_SPECIAL];
  if (special !== undefined) return encoder.encode(special);
  const bytes: number[] = [];
  for (let rest = id - FIRST_ORDINARY; rest > 0; rest = Math.floor(rest / BASE)) {
    bytes.push(rest % BASE - 1);
  }
  return Uint8Array.from(bytes.filter((b) => b >= 0));
}

export function bytesOfTokens(ids: readonly number[]): Uint8Array {
  return Uint8Array.from(ids.flatMap((id) => [...bytesOfToken(id)]));
}

/** The text of the tokens; bytes that form no character become U+FFFD. */
export function detokenize(ids: readonly number[]): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOfTokens(ids));
}

/** The text of the tokens without an unfinished character at the end. */
export function wholeText(ids: readonly number[]): string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return decoder.decode(bytesOfTokens(ids), { stream: true });
}

/** The text cut as it would be streamed: one token a piece, a split character in one piece. */
export function streamedPieces(text: string): string[] {
  const pieces: string[] = [];
  let held: number[] = [];
  for (const id of tokenize(text)) {
    held.push(id);
    const piece = wholeText(held);
    if (piece === "" || encoder.encode(piece).length < bytesOfTokens(held).length) continue;
    pieces.push(piece);
    held = [];
  }
  return pieces;
}

/** How many tokens the two lists share from the start. */
export function commonPrefix(a: readonly number[], b: readonly number[]): number {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n++;
  return n;
}
