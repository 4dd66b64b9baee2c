// Guards: recall finds words of any language and script, names, numbers, identifiers, paths and signs.
import { deepStrictEqual, ok } from "node:assert";
import { missedQuestions, QUESTIONS, TEXTS } from "./recall_languages.ts";

Deno.test("missedQuestions() of the set of languages names none, and every text is asked for", () => {
  const asked = new Set(QUESTIONS.map(([, text]) => text));
  deepStrictEqual(Object.keys(TEXTS).filter((text) => !asked.has(text)), []);
  ok(QUESTIONS.length >= 64, String(QUESTIONS.length));
  deepStrictEqual(missedQuestions(), []);
});
