import assert from "node:assert/strict";
import { createIndexDb } from "./index_db.ts";
import { kindsOf } from "./kinds.ts";
import { termsOf, tokens } from "./words.ts";

function found(texts: readonly string[], question: string): string[] {
  const db = createIndexDb(":memory:", "private");
  texts.forEach((text, i) =>
    db.add(`s${i}`, [{
      ...{
        log: `s${i}`,
        record: 0,
        part: 0,
        time_unix_ms: i,
        who: "x",
        tag: "experience" as const,
      },
      ...{ class: "private" as const, untrusted: false, text },
    }])
  );
  const hits = db.search(termsOf(question), 10).map(({ text }) => text);
  db.close();
  return hits;
}

Deno.test("search() puts a text that says the word before one that names a thing of that kind", () => {
  const texts = ["She plays tennis now.", "The sport of kings.", "The kettle is on."];
  assert.deepEqual(found(texts, "which sports?"), [texts[1], texts[0]]);
});

Deno.test("search() finds by kind a thing named in any ending, and nothing of another kind", () => {
  const texts = ["We went swimming.", "Two puppies slept.", "He studied physics.", "Nothing here."];
  assert.deepEqual(found(texts, "exercise"), [texts[0]]);
  assert.deepEqual(found(texts, "animals"), [texts[1]]);
  assert.deepEqual(found(texts, "science"), [texts[2]]);
});

Deno.test("kindsOf() gives each kind once, and none for words it does not know or that are inherited names", () => {
  const kinds = kindsOf(tokens("tennis Tennis golf constructor __proto__ 47 東京"));
  assert.equal(kinds.filter((kind) => kind === "sport").length, 1);
  assert.deepEqual(kindsOf(tokens("constructor __proto__ ing s es 47 東京")), []);
});
