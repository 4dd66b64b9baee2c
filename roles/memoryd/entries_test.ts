import assert from "node:assert/strict";
import fc from "fast-check";
import { characters, entriesOf, grouped, isSeparator, textOf, tidied } from "./entries.ts";

const entry = fc.string({ unit: "grapheme", maxLength: 60 }).map(tidied)
  .filter((text) => text !== "" && !text.split("\n").some(isSeparator));

Deno.test("entriesOf() reads back exactly the entries that textOf() wrote", () => {
  fc.assert(fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
    assert.deepEqual(entriesOf(textOf(entries)), entries);
  }));
});

Deno.test("entriesOf() takes a separator with other line ends and blanks around it", () => {
  assert.deepEqual(entriesOf("a\r\n § \r\nb\n§\n\n§\nc § d\n"), ["a", "b", "c § d"]);
  assert.deepEqual(entriesOf(" \n\n"), []);
});

Deno.test("characters() counts scalar values, not UTF-16 units", () => {
  assert.equal(characters("a😀é"), 3);
  assert.equal(grouped(1_234_567), "1,234,567");
  assert.equal(grouped(999), "999");
});
