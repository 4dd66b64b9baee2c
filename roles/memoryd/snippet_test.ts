import assert from "node:assert/strict";
import fc from "fast-check";
import { snippet } from "./snippet.ts";
import { termsOf } from "./words.ts";

Deno.test("snippet() is at most 600 characters and a part of the text, cut between characters", () => {
  const long = fc.array(
    fc.constantFrom("word ", "東", "e\u0301\u0323", "👩‍👩‍👧", "🇩🇪", "ก็", "\n", "needle ", "\uFFFD"),
    { minLength: 300, maxLength: 900 },
  ).map((parts) => parts.join(""));
  const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
  fc.assert(
    fc.property(long, (text) => {
      const shown = snippet(text, termsOf("needle 東"));
      assert.ok([...shown].length <= 600);
      assert.ok(shown.isWellFormed());
      const inner = shown.replace(/^…|…$/g, "");
      const at = text.indexOf(inner);
      assert.ok(at >= 0);
      if (text.length <= 600) return;
      const starts = new Set([...segmenter.segment(text)].map((one) => one.index));
      starts.add(text.length);
      let place = at;
      let isClean = false;
      for (; place >= 0; place = text.indexOf(inner, place + 1)) {
        isClean ||= starts.has(place) && starts.has(place + inner.length);
      }
      assert.ok(isClean, JSON.stringify(inner.slice(0, 20)));
    }),
    { numRuns: 200 },
  );
});

Deno.test("snippet() shows the place where most of the question stands together", () => {
  const filler = "lorem ipsum dolor sit amet ".repeat(60);
  const text = `${filler}launch alone. ${filler}The launch window moved to Thursday. ${filler}`;
  const shown = snippet(text, termsOf("when is the launching window on thursday"));
  assert.match(shown, /The launch window moved to Thursday/);
  assert.match(shown, /^…/);
  assert.match(shown, /…$/);
  assert.equal(snippet("short", []), "short");
  // A word that folding makes longer than it is written.
  const folds = `${"ﷺ".repeat(700)}東京`;
  assert.match(snippet(folds, termsOf("東京")), /東京$/);
});
