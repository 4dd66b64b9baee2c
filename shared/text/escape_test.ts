import { ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { escapeForDisplay, isPlainText, oddities } from "./escape.ts";

// One or more points of every row of the table of hidden characters, with how they must look.
const GOLDEN: readonly (readonly [string, string])[] = [
  ["\u0000", "\\u{0}"],
  ["\u001b[31m", "\\u{1b}[31m"],
  ["\u007f", "\\u{7f}"],
  ["\u009b", "\\u{9b}"],
  ["\r\n", "\\u{d}\\u{a}"],
  ["\t", "\\u{9}"],
  ["\u202e", "\\u{202e}"],
  ["\u2066", "\\u{2066}"],
  ["\u061c", "\\u{61c}"],
  ["a\u200bb", "a\\u{200b}b"],
  ["\u00ad", "\\u{ad}"],
  ["\ufeff", "\\u{feff}"],
  ["\u034f", "\\u{34f}"],
  ["\u3164", "\\u{3164}"],
  ["\u2028", "\\u{2028}"],
  ["\u2029", "\\u{2029}"],
  ["\u00a0", "\\u{a0}"],
  ["\u3000", "\\u{3000}"],
  ["\ufe0f", "\\u{fe0f}"],
  ["\u{e0100}", "\\u{e0100}"],
  ["\u{e0041}", "\\u{e0041}"],
  ["\u2800", "\\u{2800}"],
  ["\u{1d159}", "\\u{1d159}"],
  ["\ud800", "\\u{d800}"],
  ["\udfff!", "\\u{dfff}!"],
  ["\ue000", "\\u{e000}"],
  ["\u{10ffff}", "\\u{10ffff}"],
  ["\ufdd0", "\\u{fdd0}"],
  ["\u{378}", "\\u{378}"],
  ["\\u{200b}", "\\\\u{200b}"],
  ["👩\u200d🔬", "👩\\u{200d}🔬"],
];

Deno.test("escapeForDisplay() shows every class of hidden character as an escape", () => {
  for (const [text, shown] of GOLDEN) strictEqual(escapeForDisplay(text, "line"), shown);
});

Deno.test("escapeForDisplay() lets line feed and tab pass in declared lines only", () => {
  strictEqual(escapeForDisplay("a\n\tb\r\\", "lines"), "a\n\tb\\u{d}\\\\");
  strictEqual(escapeForDisplay("a\nb", "line"), "a\\u{a}b");
});

Deno.test("escapeForDisplay() leaves ordinary text of many alphabets alone", () => {
  const text = "Grüße, naïve 漢字 кошка 😀 -- {x: [1]} `|<>` \"'";
  strictEqual(escapeForDisplay(text, "line"), text);
  assert(isPlainText(text));
});

function unescape(shown: string): string {
  return shown.replace(
    /\\\\|\\u\{([0-9a-f]+)\}/g,
    (_, hex) => hex === undefined ? "\\" : String.fromCodePoint(parseInt(hex, 16)),
  );
}

Deno.test("escapeForDisplay() is injective: the text can be had back", () => {
  const anyText = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom("\\", "u", "{", "}", "2", "0", "\u200b", "\n", "\t", " ") }),
  );
  fc.assert(fc.property(anyText, (text) => {
    for (const shape of ["line", "lines"] as const) {
      const shown = escapeForDisplay(text, shape);
      strictEqual(unescape(shown), text);
      assert(isPlainText(shape === "line" ? shown : shown.replaceAll(/[\n\t]/g, "")));
    }
  }));
});

Deno.test("isPlainText() refuses each golden character", () => {
  for (const [text] of GOLDEN) {
    if (!text.startsWith("\\")) assert(!isPlainText(text), JSON.stringify(text));
  }
});

Deno.test("oddities() names what is shown but deceives", () => {
  strictEqual(oddities("plain words, 漢字, кошка and λόγος").length, 0);
  strictEqual(oddities("a\u0301\u0301\u0301").length, 1);
  strictEqual(oddities("rm        -rf").length, 1);
  strictEqual(oddities("p\u0430ypal").length, 1);
});
