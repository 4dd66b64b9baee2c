// Guards: many threads keep memory flat, and reconnections multiply nothing. The short form of
// `deno task chaos --channel --threads 1000 --reconnections 200`.
import { deepStrictEqual, strictEqual } from "node:assert";
import { growthProblems, startGrowthHouse, stormProblems } from "./channel_growth.ts";

Deno.test("channel growth: more threads need no more memory", async () => {
  await using house = await startGrowthHouse();
  deepStrictEqual(growthProblems(await house.grow(40)), []);
});

Deno.test("channel growth: reconnections multiply neither sockets, requests, files nor answers", async () => {
  await using house = await startGrowthHouse();
  deepStrictEqual(stormProblems(await house.storm(8), 8), []);
});

Deno.test("channel growth: what grew or multiplied is told", () => {
  strictEqual(growthProblems({ firstKb: 40_000, secondKb: 50_000 }).length, 1);
  const bad = {
    reconnections: 40,
    sockets: 2,
    requestsAfter: 40,
    filesBefore: 30,
    filesAfter: 50,
    answers: 2,
  };
  strictEqual(stormProblems(bad, 20).length, 5);
});
