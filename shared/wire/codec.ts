// The one place where bytes become values and values become bytes.
//
// 1. Text is UTF-8, decoded fatally and with its byte-order mark kept.
// 2. What one part of the house sends another is canonical: encoding the parsed value gives the same
//    bytes. That refuses duplicate keys, -0, 1e400, odd escapes and stray blanks at once.
// 3. No string holds a lone surrogate; depth, keys and string sizes are bounded.
import { err, messageOf, ok, type Result } from "../results/result.ts";
import { MAX_DEPTH, MAX_KEYS, MAX_STRING_BYTES } from "./limits.ts";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export interface Bounds {
  readonly depth: number;
  readonly keys: number;
  readonly stringBytes: number;
}

/** What a frame may hold. */
export const FRAME_BOUNDS: Bounds = {
  depth: MAX_DEPTH,
  keys: MAX_KEYS,
  stringBytes: MAX_STRING_BYTES,
};

/** What a log line or a tool's arguments may hold: deep values are refused, long ones are not. */
export const WIDE_BOUNDS: Bounds = { depth: MAX_DEPTH, keys: 4_096, stringBytes: 67_108_864 };

/** Decodes UTF-8. Fails with `not-utf8`. */
export function decodeUtf8(bytes: Uint8Array): Result<string> {
  try {
    return ok(strict.decode(bytes));
  } catch {
    // The decoder's own message says no more than the code does.
    return err("not-utf8", `Cannot decode ${bytes.length} bytes as UTF-8`);
  }
}

/** Decodes UTF-8, showing each undecodable byte as U+FFFD. Only for text shown to a person or model. */
export function decodeLossy(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** Decodes text of a named charset, UTF-8 when the name means nothing; for pages of others. */
export function decodeAs(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    // Only an unknown name throws: a charset that nobody knows is read as the usual one.
    return new TextDecoder().decode(bytes);
  }
}

/** UTF-8 bytes of a text. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/**
 * Parses JSON of an outside server, of which only single fields are picked by a schema: nothing in it
 * is bounded, so nothing may walk through the whole. Fails with `not-json`.
 */
export function parseUnbounded(text: string): Result<unknown> {
  try {
    return ok(JSON.parse(text));
  } catch (thrown) {
    return err("not-json", `Cannot parse JSON: ${messageOf(thrown)}`);
  }
}

/** Parses JSON within `bounds`. Fails with `not-json`; nothing is repaired. */
export function parseJson(text: string, bounds: Bounds = WIDE_BOUNDS): Result<unknown> {
  const value = parseUnbounded(text);
  const problem = value.ok ? beyond(value.value, bounds, 0) : null;
  return problem === null ? value : err("not-json", problem);
}

/** Parses bytes that must be the canonical form of what they say. Fails with `not-utf8`, `not-json` or `not-canonical`. */
export function parseCanonical(bytes: Uint8Array, bounds: Bounds = WIDE_BOUNDS): Result<unknown> {
  const text = decodeUtf8(bytes);
  return text.ok ? parseCanonicalText(text.value, bounds) : text;
}

/** As `parseCanonical`, for text already decoded. */
export function parseCanonicalText(text: string, bounds: Bounds = WIDE_BOUNDS): Result<unknown> {
  const value = parseJson(text, bounds);
  if (!value.ok) return value;
  if (JSON.stringify(value.value) !== text) {
    return err("not-canonical", "The JSON is not in the form that encoding it again gives");
  }
  return value;
}

/**
 * The canonical text of a value that JSON can hold. Half a surrogate pair, which a text cut to a
 * length can end with and no reader accepts, becomes U+FFFD. Throws on a value that JSON cannot
 * hold: a bug of the caller.
 */
export function canonicalText(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("This value has no JSON form");
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (all) => all.length > 2 ? "\ufffd" : all);
}

/** The canonical bytes of a value. */
export function encodeCanonical(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(canonicalText(value));
}

function beyond(value: unknown, bounds: Bounds, depth: number): string | null {
  if (typeof value === "string") return stringProblem(value, bounds);
  if (typeof value === "number" && !Number.isFinite(value)) return "A number is too large to hold";
  if (typeof value !== "object" || value === null) return null;
  if (depth >= bounds.depth) return `The JSON is nested deeper than ${bounds.depth}`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = beyond(item, bounds, depth + 1);
      if (problem !== null) return problem;
    }
    return null;
  }
  let keys = 0;
  // A value that JSON.parse made has no inherited key, so this loop sees its own keys and no other.
  for (const key in value) {
    if (++keys > bounds.keys) return `An object has more than ${bounds.keys} keys`;
    const item: unknown = Reflect.get(value, key);
    const problem = stringProblem(key, bounds) ?? beyond(item, bounds, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function stringProblem(text: string, bounds: Bounds): string | null {
  if (!text.isWellFormed()) return "A string holds a lone surrogate";
  // A UTF-16 unit takes at most three bytes of UTF-8, so short strings need no encoding.
  if (text.length * 3 <= bounds.stringBytes) return null;
  const bytes = encoder.encode(text).length;
  return bytes <= bounds.stringBytes
    ? null
    : `A string has ${bytes} bytes, more than ${bounds.stringBytes}`;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Standard base 64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return bytes.toBase64();
}

/** Decodes standard base 64; only the form that `toBase64` gives. Fails with `not-canonical`. */
export function fromBase64(text: string): Result<Uint8Array> {
  if (!BASE64.test(text)) return err("not-canonical", "The text is not base 64");
  const bytes = Uint8Array.fromBase64(text);
  return bytes.toBase64() === text ? ok(bytes) : err("not-canonical", "Stray bits in base 64");
}
