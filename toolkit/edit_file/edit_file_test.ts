// Guards edit_file: exact words, once, or nothing changed.
import { deepStrictEqual, strictEqual } from "node:assert";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { editFile } from "./edit_file.ts";

const names = (folder: string) => [...Deno.readDirSync(folder)].map((entry) => entry.name);

Deno.test("editFile() what is not there, not once, or no text changes nothing", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    Deno.writeTextFileSync(path, "one two two\n");
    Deno.writeFileSync(`${folder}/b`, Uint8Array.of(0xff, 0x6f));
    Deno.symlinkSync(path, `${folder}/link`);
    const cases = [
      [path, "three", "x", "not-found"],
      [path, "two", "x", "ambiguous"],
      [path, "ONE", "x", "not-found"],
      [path, "one\ntwo", "x", "not-found"],
      [path, "one", "one", "no-change"],
      [`${folder}/b`, "o", "x", "not-text"],
      [`${folder}/link`, "one", "x", "not-a-file"],
      [`${folder}/none`, "one", "x", "not-found"],
      [folder, "one", "x", "not-a-file"],
    ] as const;
    for (const [file, old, fresh, code] of cases) {
      const { outcome } = await playTool(editFile, { path: file, old, new: fresh });
      strictEqual(outcome.ok ? "done" : outcome.code, code, `${file} ${old}`);
    }
    strictEqual(Deno.readTextFileSync(path), "one two two\n");
    deepStrictEqual(names(folder).toSorted(), ["a", "b", "link"]);
  });
});

Deno.test("editFile() replaces the one place, or all when all are meant, and keeps the mode", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a`;
    Deno.writeTextFileSync(path, "a.b a.b $& é\r\n");
    Deno.chmodSync(path, 0o640);
    const all = await playTool(editFile, { path, old: "a.b", new: "$&", all: true });
    strictEqual(all.outcome.ok, true);
    strictEqual(Deno.readTextFileSync(path), "$& $& $& é\r\n");
    await playTool(editFile, { path, old: " é\r\n", new: "" });
    strictEqual(Deno.readTextFileSync(path), "$& $& $&");
    strictEqual((Deno.statSync(path).mode ?? 0) & 0o777, 0o640);
    deepStrictEqual(names(folder), ["a"]);
  });
});
