import assert from "node:assert/strict";
import fc from "fast-check";
import { applyEdit, Edit } from "./edits.ts";
import { characters, LIMITS, textOf } from "./entries.ts";

const edit = (value: unknown) => Edit.parse(value);
const code = (value: unknown, current: string[]) => {
  const result = applyEdit(edit(value), current);
  return result.ok ? "ok" : result.code;
};

Deno.test("applyEdit() refuses what does not name each entry exactly", () => {
  const now = ["one", "two"];
  const file = "memory";
  assert.equal(code({ action: "add", file, text: "one" }, now), "memory-duplicate");
  assert.equal(code({ action: "add", file, text: " one \r\n" }, now), "memory-duplicate");
  assert.equal(code({ action: "add", file, text: "a\n§\nb" }, now), "memory-text-refused");
  assert.equal(code({ action: "replace", file, old: "on", text: "x" }, now), "memory-no-match");
  assert.equal(code({ action: "replace", file, old: "one", text: "two" }, now), "memory-duplicate");
  assert.equal(code({ action: "replace", file, old: "one", text: "one" }, now), "memory-duplicate");
  assert.equal(code({ action: "remove", file, old: "three" }, now), "memory-no-match");
  assert.equal(code({ action: "remove", file, old: "one" }, ["one", "one"]), "memory-no-match");
  const fates = (...entries: unknown[]) => ({ action: "consolidate", file, entries });
  assert.equal(code(fates({ old: "one", keep: true }), now), "memory-incomplete");
  assert.equal(
    code(
      fates({ old: "one", keep: true }, { old: "one", move: true }, { old: "two", drop: true }),
      now,
    ),
    "memory-no-match",
  );
  assert.equal(
    code(fates({ old: "one", keep: true }, { old: "two", text: "one" }), now),
    "memory-duplicate",
  );
  assert.equal(
    code(fates({ old: "one", keep: true }, { old: "two", keep: true }, { text: "" }), now),
    "memory-text-refused",
  );
});

Deno.test("Edit refuses a fate that is two things or nothing", () => {
  for (
    const fate of [
      { old: "a" },
      { old: "a", keep: false },
      { old: "a", keep: true, move: true },
      {},
    ]
  ) {
    const parsed = Edit.safeParse({ action: "consolidate", file: "memory", entries: [fate] });
    assert.equal(parsed.success, false);
  }
  assert.equal(Edit.safeParse({ action: "add", file: "soul", text: "x" }).success, false);
});

Deno.test("applyEdit() says the fixed sentence over the limit, at n - 1, n and n + 1", () => {
  const now = ["x".repeat(LIMITS.user - 10)];
  const add = (length: number) =>
    applyEdit(edit({ action: "add", file: "user", text: "é".repeat(length) }), now);
  assert.ok(add(6).ok);
  assert.ok(add(7).ok);
  const over = add(8);
  assert.ok(!over.ok);
  assert.equal(
    over.detail,
    "user.md would be 1,376 of 1,375 characters; use consolidate to move entries to the archive",
  );
});

Deno.test("applyEdit() lets nothing vanish: each old entry stays, moves or is dropped", () => {
  const texts = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { maxLength: 8 });
  const fate = fc.constantFrom("keep", "move", "drop", "text");
  fc.assert(fc.property(texts, fc.array(fate, { minLength: 8, maxLength: 8 }), (now, fates) => {
    const entries = now.map((old, i) =>
      fates[i] === "text" ? { old, text: `${old} rewritten` } : { old, [fates[i] ?? "keep"]: true }
    );
    const result = applyEdit(edit({ action: "consolidate", file: "memory", entries }), now);
    assert.ok(result.ok);
    const kept = new Set(result.value.entries);
    const left = new Set(result.value.leaving.map((one) => one.text));
    for (const old of now) assert.ok(kept.has(old) !== left.has(old));
    assert.ok(characters(textOf(result.value.entries)) <= LIMITS.memory);
  }));
});
