import assert from "node:assert/strict";
import { createIndexDb } from "./index_db.ts";
import { kindsOf } from "./kinds.ts";
import { originalsFirst } from "./ranking.ts";
import { termsOf, tokens } from "./words.ts";

function found(texts: readonly string[], question: string, k = 10): string[] {
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
  const hits = db.search(termsOf(question), k).map(({ text }) => text);
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

Deno.test("search() shows a text before a later one that quotes it, not before one that it quotes", () => {
  const texts = [
    "Note that the spare key hangs behind the barometer.",
    "the spare key hangs behind the barometer",
    "About the spare key, spare key:\n> > the spare key hangs\n> > behind the barometer",
  ];
  const hits = found(texts, "spare key");
  assert.ok(hits.indexOf(texts[1] ?? "") < hits.indexOf(texts[2] ?? ""), JSON.stringify(hits));
  assert.equal(hits.length, 3);
  const early = { text: "x of the same words", time_unix_ms: 1 };
  const late = { text: "> x of the same\n> words, as said", time_unix_ms: 2 };
  assert.deepEqual(originalsFirst([late, early]), [early, late]);
  assert.deepEqual(originalsFirst([early, late]), [early, late]);
  assert.deepEqual(originalsFirst([{ ...late, time_unix_ms: 0 }, early])[1], early);
});

Deno.test("search() shows what many answers quote, though there are more of them than it may show", () => {
  const texts = [
    "Note that the spare key hangs behind the barometer, not in the drawer with the others.",
  ];
  for (let i = 0; i < 12; i++) {
    texts.push(`About the spare key:\n> ${texts[0]}\nThe spare key! ${i}`);
  }
  for (const k of [1, 5]) {
    const hits = found(texts, "spare key", k);
    assert.equal(hits[0], texts[0]);
    assert.equal(hits.length, k);
  }
});

Deno.test("search() of a word that is in more texts than it may rank knows the newest of them", () => {
  const db = createIndexDb(":memory:", "private");
  db.inOneStep(() => {
    for (let log = 0; log < 21; log++) {
      db.add(
        `s${log}`,
        Array.from({ length: 100 }, (_, record) => ({
          ...{ log: `s${log}`, record, part: 0, time_unix_ms: log * 100 + record, who: "x" },
          ...{ tag: "experience" as const, class: "private" as const, untrusted: false },
          text: "common",
        })),
      );
    }
  });
  const hits = db.search(termsOf("common"), 50);
  db.close();
  assert.equal(hits.length, 50);
  assert.ok(hits.every((hit) => hit.time_unix_ms >= 100));
});
