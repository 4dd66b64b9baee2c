// Guards the promise that the gate never reports a pass it did not see.
import { deepStrictEqual } from "node:assert";
import { readRun, slowest } from "./test_run.ts";

const GOOD = "ok | 5 passed (2 steps) | 0 failed | 1 ignored (11ms)";

Deno.test("readRun() no closing line is a problem even with status 0", () => {
  deepStrictEqual(readRun("unit", ["error: type error"], 0).problems.length, 1);
});

Deno.test("readRun() a run of no tests is a problem", () => {
  deepStrictEqual(readRun("unit", ["ok | 0 passed | 0 failed (1ms)"], 0).problems.length, 1);
});

Deno.test("readRun() a status that contradicts the closing line is a problem", () => {
  deepStrictEqual(readRun("unit", ["ok | 5 passed | 0 failed (1ms)"], 1).problems.length, 1);
  deepStrictEqual(readRun("unit", ["FAILED | 5 passed | 1 failed (1ms)"], 0).problems.length, 1);
});

Deno.test("readRun() an ignored test that is not named is a problem", () => {
  deepStrictEqual(readRun("unit", [GOOD], 0).problems.length, 1);
});

Deno.test("readRun() reads counts and the names of ignored tests", () => {
  deepStrictEqual(readRun("unit", ["needs a model ... ignored (0ms)", "", GOOD], 0), {
    passed: 5,
    failed: 0,
    skipped: ["needs a model"],
    problems: [],
  });
});

Deno.test("slowest() reads minutes and seconds, and leaves out what took less", () => {
  const lines = ["a ... ok (3s)", "b ... ok (1m9s)", "c ... ok (950ms)", "d ... FAILED (12s)"];
  deepStrictEqual(slowest(lines, 2), ["69 s b", "12 s d"]);
});
