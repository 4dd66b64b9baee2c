import assert from "node:assert/strict";
import fc from "fast-check";
import { createIndexDb } from "./index_db.ts";
import { folded, nameParts, termsOf, tokens } from "./words.ts";

const rowOf = (text: string, record: number) => ({
  log: `log${record}`,
  record,
  part: 0,
  time_unix_ms: record * 86_400_000,
  who: "the owner said",
  tag: "experience",
  class: "private",
  untrusted: false,
  text,
} as const);

function found(texts: readonly string[], question: string): string[] {
  const db = createIndexDb(":memory:", "private");
  try {
    // Each text in a log of its own, so that no neighbour helps.
    texts.forEach((text, i) => db.add(`log${i}`, [rowOf(text, i)]));
    return db.search(termsOf(question), 50).map((row) => row.text);
  } finally {
    db.close();
  }
}

const GRAMMAR = [
  '"',
  "*",
  "^",
  ":",
  "(",
  ")",
  "+",
  "-",
  "{",
  "}",
  "AND",
  "OR",
  "NOT",
  "NEAR",
  "own",
  ",",
  "'",
];

Deno.test("search() gives FTS5 a query that it takes, whatever the text", () => {
  const db = createIndexDb(":memory:", "private");
  db.add("log0", [rowOf("own near text AND OR NOT", 0)]);
  const piece = fc.oneof(
    fc.constantFrom(...GRAMMAR),
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.string({ unit: "grapheme", maxLength: 12 }),
    fc.constantFrom(
      "\uD800",
      "\u0000",
      "‼",
      "😀",
      "👩‍👩‍👧",
      "ก็",
      "東京",
      "ﬁ",
      "İ",
      "e\u0301",
      "🇳🇴",
      "🇳",
      "1️⃣",
    ),
  );
  try {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        db.search(termsOf(pieces.join(" ")), 5);
      }),
      { numRuns: 400 },
    );
  } finally {
    db.close();
  }
});

Deno.test("termsOf() keeps no character of FTS5's grammar in a term", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    for (const phrase of termsOf(text)) {
      for (const token of phrase) {
        assert.match(
          token,
          /^(?:[\p{L}\p{M}\p{N}]+|\p{Extended_Pictographic}|\p{Regional_Indicator})$/u,
        );
      }
    }
  }));
});

Deno.test("termsOf() drops stop words only while other words remain", () => {
  assert.deepEqual(termsOf("What is the launch window?"), [["launch"], ["window"]]);
  assert.deepEqual(termsOf("who are you"), [["who"], ["are"], ["you"]]);
  assert.deepEqual(termsOf("… !"), []);
  assert.deepEqual(termsOf("John's 3.14 東京"), [["john"], ["3", "14"], ["東", "京"]]);
});

Deno.test("tokens() folds width, case and accents, and leaves vowels of other scripts alone", () => {
  assert.deepEqual(tokens("ＡＢＣ Größe café"), ["abc", "grosse", "cafe"]);
  assert.equal(folded("STRASSE"), folded("Straße"));
  assert.notDeepEqual(tokens("ก็"), tokens("ก"));
});

Deno.test("nameParts() parts names written as one word, and takes no time over a long one", () => {
  assert.deepEqual(nameParts("parseConfig() of XMLHttpRequest, iPhone"), [
    ..."parse config xml http request i phone".split(" "),
  ]);
  assert.deepEqual(nameParts("ABC plain Größe 東京"), []);
  assert.deepEqual(nameParts(`${"a".repeat(1_000_000)}B`), []);
});

Deno.test("a search finds words in any script, of any length, inside other words where no space is", () => {
  const texts = [
    "the running dogs",
    "東京都の会議は木曜日",
    "ประชุมวันพฤหัสบดี",
    "서울에서 만나요",
    "read /srv/notes/q3.txt",
    "Grüße aus Köln",
    "I like 🫠 a lot",
    "the file_name is set",
    "version 3.14 of it",
    "Ada writes letters",
  ];
  const cases: [string, string][] = [
    ["run", "the running dogs"],
    ["dog", "the running dogs"],
    ["ran", "the running dogs"],
    ["who wrote it", "Ada writes letters"],
    ["1 January 1970", "the running dogs"],
    ["京", "東京都の会議は木曜日"],
    ["東京", "東京都の会議は木曜日"],
    ["会議", "東京都の会議は木曜日"],
    ["พฤหัสบดี", "ประชุมวันพฤหัสบดี"],
    ["서울", "서울에서 만나요"],
    ["q3.txt", "read /srv/notes/q3.txt"],
    ["koln", "Grüße aus Köln"],
    ["🫠", "I like 🫠 a lot"],
    ["file_name", "the file_name is set"],
    ["3.14", "version 3.14 of it"],
  ];
  for (const [question, text] of cases) {
    assert.equal(found(texts, question)[0], text, question);
  }
  assert.deepEqual(found(texts, "unrelated"), []);
});
