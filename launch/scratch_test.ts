// Guards: "a try removes what an earlier try left, and nothing but that".
import { deepStrictEqual, strictEqual, throws } from "node:assert";
import { makeScratch } from "./scratch.ts";

function withOwner(body: (owner: string) => void): void {
  const owner = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  try {
    body(owner);
  } finally {
    Deno.removeSync(owner, { recursive: true });
  }
}

const namesIn = (folder: string) => [...Deno.readDirSync(folder)].map((entry) => entry.name);

Deno.test("makeScratch() touches no folder, file or link of that name that no try has made", () => {
  withOwner((owner) => {
    const base = `${owner}/trial`;
    Deno.mkdirSync(base);
    Deno.writeTextFileSync(`${base}/thesis.txt`, "three years");
    for (let tries = 0; tries < 2; tries++) throws(() => makeScratch(owner), /no try has made it/);
    deepStrictEqual(namesIn(base), ["thesis.txt"]);
    Deno.renameSync(base, `${owner}/work`);
    Deno.symlinkSync(`${owner}/work`, base);
    throws(() => makeScratch(owner), /no try has made it/);
    deepStrictEqual(namesIn(`${owner}/work`), ["thesis.txt"]);
    Deno.writeTextFileSync(`${owner}/work/.boxmaker-try`, "");
    throws(() => makeScratch(owner), /no try has made it/);
    deepStrictEqual(namesIn(`${owner}/work`).sort(), [".boxmaker-try", "thesis.txt"]);
  });
});

Deno.test("makeScratch() leaves a try that still runs alone, and begins anew after it has ended", () => {
  withOwner((owner) => {
    const first = makeScratch(owner);
    Deno.writeTextFileSync(`${first.base}/record`, "kept");
    throws(() => makeScratch(owner), /another try/i);
    strictEqual(Deno.readTextFileSync(`${first.base}/record`), "kept");
    first.marker.close();
    const second = makeScratch(owner);
    strictEqual(namesIn(second.base).includes("record"), false);
    strictEqual((Deno.statSync(second.base).mode ?? 0) & 0o777, 0o700);
    second.marker.close();
  });
});
