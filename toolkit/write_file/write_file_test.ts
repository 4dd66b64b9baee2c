// Guards write_file: the old file or the new one, never through a link, nothing left behind.
import { deepStrictEqual, strictEqual } from "node:assert";
import { err } from "../../shared/results/result.ts";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { writeFile } from "./write_file.ts";

const names = (folder: string) =>
  [...Deno.readDirSync(folder)].map((entry) => entry.name).toSorted();

Deno.test("writeFile() writes through no link, in any mode", async () => {
  await inFolder(async (folder) => {
    Deno.writeTextFileSync(`${folder}/target`, "old");
    Deno.symlinkSync(`${folder}/target`, `${folder}/link`);
    Deno.symlinkSync(`${folder}/made`, `${folder}/dangling`);
    for (const name of ["link", "dangling"]) {
      for (const mode of ["create", "replace", "append"]) {
        const { outcome } = await playTool(writeFile, {
          path: `${folder}/${name}`,
          content: "new",
          mode,
        });
        strictEqual(!outcome.ok && outcome.code, "not-a-file", `${name} ${mode}`);
      }
    }
    strictEqual(Deno.readTextFileSync(`${folder}/target`), "old");
    deepStrictEqual(names(folder), ["dangling", "link", "target"]);
  });
});

Deno.test("writeFile() creates only what is not there", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    const made = await playTool(writeFile, { path, content: "one" });
    strictEqual(made.outcome.ok, true);
    strictEqual(
      Deno.statSync(path).mode !== null && (Deno.statSync(path).mode ?? 0) & 0o777,
      0o600,
    );
    const again = await playTool(writeFile, { path, content: "two" });
    strictEqual(!again.outcome.ok && again.outcome.code, "exists");
    strictEqual(Deno.readTextFileSync(path), "one");
    deepStrictEqual(names(folder), ["a"]);
  });
});

Deno.test("writeFile() does not replace a file that came in between", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    Deno.writeTextFileSync(path, "theirs");
    const { outcome } = await playTool(writeFile, { path, content: "ours" }, {
      lstat: () => Promise.resolve(err("not-found", "")),
    });
    strictEqual(!outcome.ok && outcome.code, "exists");
    strictEqual(Deno.readTextFileSync(path), "theirs");
    deepStrictEqual(names(folder), ["a"]);
  });
});

Deno.test("writeFile() replaces as a whole and keeps the mode", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    Deno.writeTextFileSync(path, "a much longer old text");
    Deno.chmodSync(path, 0o640);
    const { text } = await playTool(writeFile, { path, content: "new", mode: "replace" });
    strictEqual(Deno.readTextFileSync(path), "new");
    strictEqual((Deno.statSync(path).mode ?? 0) & 0o777, 0o640);
    strictEqual(
      text,
      "replaced: 3 bytes, SHA-256 11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437\n",
    );
    deepStrictEqual(names(folder), ["a"]);
  });
});

Deno.test("writeFile() leaves the old file and nothing else when the disk is full", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    Deno.writeTextFileSync(path, "old");
    const { outcome } = await playTool(writeFile, { path, content: "new", mode: "replace" }, {
      rename: () => Promise.resolve(err("no-space", "")),
    });
    strictEqual(!outcome.ok && outcome.code, "no-space");
    strictEqual(Deno.readTextFileSync(path), "old");
    deepStrictEqual(names(folder), ["a"]);
  });
});

Deno.test("writeFile() appends at the end and only to what is there", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    const missing = await playTool(writeFile, { path, content: "x", mode: "append" });
    strictEqual(!missing.outcome.ok && missing.outcome.code, "not-found");
    Deno.writeTextFileSync(path, "one\n");
    await playTool(writeFile, { path, content: "two\n", mode: "append" });
    strictEqual(Deno.readTextFileSync(path), "one\ntwo\n");
    const noFolder = await playTool(writeFile, { path: `${folder}/none/a`, content: "x" });
    strictEqual(!noFolder.outcome.ok && noFolder.outcome.code, "not-found");
  });
});
