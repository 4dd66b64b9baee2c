// Guards: a campaign that went wrong is told so. Each fault of a conversation is seen by the judge.
import { deepStrictEqual, match, strictEqual } from "node:assert";
import { type Seen, verdict } from "./channel_verdict.ts";

const SENT = [{ root: "a", word: "m0" }, { root: "b", word: "m1" }, { root: "a", word: "m2" }];
const answer = (root_id: string, word: string): Seen => ({ root_id, message: `Did ${word} well` });
const GOOD = [answer("a", "m0"), answer("b", "m1"), answer("a", "m2")];

Deno.test("verdict() sees an answer that is missing, twice, elsewhere, out of order, or nobody's", () => {
  const faults: readonly (readonly [Seen[], RegExp])[] = [
    [[answer("a", "m0"), answer("a", "m2")], /^m1 was answered 0 times/],
    [[...GOOD, answer("b", "m1")], /^m1 was answered 2 times/],
    [[answer("a", "m0"), answer("a", "m1"), answer("a", "m2")], /^m1 was answered under a/],
    [[answer("a", "m2"), answer("b", "m1"), answer("a", "m0")], /^the order of m0,m2 became m2,m0/],
    [[...GOOD, { root_id: "a", message: "Taking it up" }], /answers nothing: Taking it up/],
    [[...GOOD, answer("a", "m9")], /answers nothing: Did m9/],
  ];
  for (const [posts, what] of faults) match(verdict(posts, SENT).join("\n"), new RegExp(what, "m"));
});

Deno.test("verdict() has nothing to say of a conversation as it should be", () => {
  const note = { root_id: "", message: "The channel was down for 2 min from 2026-01-01T00:00:00Z" };
  deepStrictEqual(verdict([...GOOD, note], SENT), []);
  strictEqual(verdict([], []).length, 0);
});
