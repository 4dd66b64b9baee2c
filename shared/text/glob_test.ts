// Guards the pattern language of grants and of file names: two signs, an escape, and time that cannot be blown up.
import { ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { globMatches, globProblem } from "./glob.ts";

Deno.test("globMatches() no regular expression hides in a pattern", () => {
  for (const pattern of ["a.c", "a+", "[ab]", "a|b", "^a$", "(a)", "a{1}", "\\d"]) {
    ok(!globMatches(pattern, "abc") && !globMatches(pattern, "a") && !globMatches(pattern, "5"));
  }
  ok(globMatches("a.c", "a.c"));
  ok(!globMatches("", "a"));
  ok(globMatches("", ""));
});

Deno.test("globMatches() agrees with the same pattern written as a regular expression", () => {
  const piece = fc.constantFrom("*", "?", "a", "b", "/", "\\*", "\\?", "\\\\");
  const text = fc.array(fc.constantFrom("a", "b", "*", "?", "\\", "/", "\n", "𝒳"), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), text, (pieces, letters) => {
      const source = pieces.map((one) =>
        one === "*" ? "[^]*" : one === "?" ? "[^]" : one.at(-1)?.replace(/[*?\\/]/, "\\$&")
      ).join("");
      const expected = new RegExp(`^${source}$`, "u").test(letters.join(""));
      strictEqual(globMatches(pieces.join(""), letters.join("")), expected);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("globMatches() a pattern full of stars takes no more than pattern times text", () => {
  ok(!globMatches("*a".repeat(200) + "b", "a".repeat(20_000)));
});

Deno.test("globProblem() a lone backslash at the end is refused, an escaped one is not", () => {
  ok(globProblem("a\\") !== null && globProblem("\\\\\\") !== null);
  ok(globProblem("a\\\\") === null && globProblem("\\*") === null && globProblem("") === null);
});
