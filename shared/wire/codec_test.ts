// Guards: "what one part of the house sends another is canonical, bounded and well formed".
import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import {
  canonicalText,
  encodeCanonical,
  encodeUtf8,
  FRAME_BOUNDS,
  fromBase64,
  parseCanonical,
  parseCanonicalText,
  parseJson,
  toBase64,
} from "./codec.ts";
import { MAX_DEPTH, MAX_KEYS, MAX_STRING_BYTES } from "./limits.ts";

const code = (result: { ok: true } | { ok: false; code: string }) => result.ok ? "ok" : result.code;

Deno.test("parseCanonicalText() refuses every spelling that encoding again would change", () => {
  const odd = [
    '{"a":1,"a":2}',
    "-0",
    "9007199254740993",
    '{"b":1,"1":2}',
    '{ "a":1}',
    '"\\u0041"',
    '"\\/"',
    "1.0",
    "1e2",
    '{"__proto__":1,"__proto__":2}',
    "[1, 2]",
    "1\n",
  ];
  for (const text of odd) strictEqual(code(parseCanonicalText(text)), "not-canonical", text);
});

Deno.test("parseCanonical() refuses a byte-order mark, overlong and cut UTF-8, and lone surrogates", () => {
  strictEqual(code(parseCanonical(new Uint8Array([0xef, 0xbb, 0xbf, 0x31]))), "not-json");
  strictEqual(code(parseCanonical(new Uint8Array([0x22, 0xc0, 0xaf, 0x22]))), "not-utf8");
  strictEqual(code(parseCanonical(new Uint8Array([0x22, 0xe2, 0x82, 0x22]))), "not-utf8");
  strictEqual(code(parseCanonicalText('"\\ud800"')), "not-json");
  strictEqual(code(parseCanonicalText('{"\\udfff":1}')), "not-json");
});

Deno.test("parseJson() refuses a number that becomes infinite, wherever it stands", () => {
  for (const text of ["1e400", "-1e400", "[1e309]", '{"a":{"b":[-1e999]}}']) {
    strictEqual(code(parseJson(text)), "not-json", text);
  }
  for (const text of ["1e308", "1e-400", '"1e400"']) strictEqual(code(parseJson(text)), "ok", text);
});

Deno.test("parseJson() bounds depth, keys and strings at n-1, n and n+1", () => {
  const deep = (n: number) => "[".repeat(n) + "]".repeat(n);
  strictEqual(code(parseJson(deep(MAX_DEPTH - 1))), "ok");
  strictEqual(code(parseJson(deep(MAX_DEPTH))), "ok");
  strictEqual(code(parseJson(deep(MAX_DEPTH + 1))), "not-json");
  strictEqual(code(parseJson(deep(100_000))), "not-json");
  const wide = (n: number) =>
    canonicalText(Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i])));
  strictEqual(code(parseJson(wide(MAX_KEYS), FRAME_BOUNDS)), "ok");
  strictEqual(code(parseJson(wide(MAX_KEYS + 1), FRAME_BOUNDS)), "not-json");
  for (const letter of ["a", "é", "漢", "😀"]) {
    const size = encodeUtf8(letter).length;
    const fits = letter.repeat(Math.floor(MAX_STRING_BYTES / size));
    strictEqual(code(parseJson(canonicalText(fits), FRAME_BOUNDS)), "ok", letter);
    strictEqual(code(parseJson(canonicalText(fits + letter), FRAME_BOUNDS)), "not-json", letter);
  }
});

Deno.test("parseCanonical() gives back every value that encodeCanonical() can write", () => {
  const value = fc.jsonValue({ maxDepth: 6 }).filter((v) => !Object.is(v, -0));
  fc.assert(fc.property(value, (v) => {
    const wire = encodeCanonical(v);
    const parsed = parseCanonical(wire);
    strictEqual(code(parsed), "ok");
    if (parsed.ok) deepStrictEqual(encodeCanonical(parsed.value), wire);
  }));
});

Deno.test("encodeCanonical() writes no text that its own reader refuses, wherever a text was cut", () => {
  const unit = fc.constantFrom("😀", "\\", "\\ud83d", "\ud83d", "\udc00", '"', "a", "\u2028");
  const text = fc.tuple(fc.array(unit, { maxLength: 12 }), fc.nat(12), fc.nat(12))
    .map(([units, from, to]) => units.join("").slice(Math.min(from, to), Math.max(from, to)));
  fc.assert(fc.property(text, text, (key, value) => {
    const parsed = parseCanonical(encodeCanonical({ [`k${key}`]: [value] }));
    deepStrictEqual(parsed, {
      ok: true,
      value: { [`k${key.toWellFormed()}`]: [value.toWellFormed()] },
    });
  }));
});

Deno.test("parseCanonical() never throws, whatever the bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
    parseCanonical(bytes);
  }));
});

Deno.test("fromBase64() takes only what toBase64() gives", () => {
  for (const odd of ["A", "AA", "AA=", "AB==", "AA==\n", "A-_A", " AAA", "AAAA="]) {
    strictEqual(fromBase64(odd).ok, false, odd);
  }
  fc.assert(fc.property(fc.uint8Array(), (bytes) => {
    const back = fromBase64(toBase64(bytes));
    strictEqual(back.ok, true);
    if (back.ok) deepStrictEqual([...back.value], [...bytes]);
  }));
});
