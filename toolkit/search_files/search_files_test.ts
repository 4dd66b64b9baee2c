// Guards search_files: plain text in linear time, no link followed, nothing binary printed.
import { deepStrictEqual, strictEqual } from "node:assert";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { searchFiles } from "./search_files.ts";

Deno.test("searchFiles() follows no link and opens no binary file", async () => {
  await inFolder(async (folder) => {
    Deno.writeTextFileSync(`${folder}/outside`, "needle");
    Deno.mkdirSync(`${folder}/in`);
    Deno.symlinkSync(`${folder}/outside`, `${folder}/in/link`);
    Deno.symlinkSync(folder, `${folder}/in/up`);
    Deno.writeTextFileSync(`${folder}/in/binary`, "needle\u0000needle");
    const { outcome, text } = await playTool(searchFiles, { path: `${folder}/in`, text: "needle" });
    deepStrictEqual([text, outcome.ok && outcome.value], ["", "0 lines; 3 entries skipped"]);
  });
});

Deno.test("searchFiles() prints path, line and text, with nothing invisible in them", async () => {
  await inFolder(async (folder) => {
    Deno.mkdirSync(`${folder}/sub`);
    Deno.writeTextFileSync(`${folder}/sub/a.md`, "one\r\ntwo x\u202e\r\nthree x");
    Deno.writeTextFileSync(`${folder}/b.txt`, `${"y".repeat(500)}x`);
    const { text } = await playTool(searchFiles, { path: folder, text: "x" });
    strictEqual(
      text,
      `b.txt:1:${
        "y".repeat(400)
      } ... (501 characters)\nsub/a.md:2:two x\\u{202e}\nsub/a.md:3:three x\n`,
    );
    const named = await playTool(searchFiles, { path: folder, text: "X", names: "*.md" });
    strictEqual(named.text, "");
    const folded = await playTool(searchFiles, {
      path: folder,
      text: "TWO",
      names: "*.md",
      ignore_case: true,
    });
    strictEqual(folded.text, "sub/a.md:2:two x\\u{202e}\n");
  });
});

Deno.test("searchFiles() finds names, stops at its limit, and wants something to look for", async () => {
  await inFolder(async (folder) => {
    for (const name of ["a.md", "b.md", "c.txt"]) {
      Deno.writeTextFileSync(`${folder}/${name}`, "x\nx");
    }
    strictEqual(
      (await playTool(searchFiles, { path: folder, names: "*.md" })).text,
      "a.md\nb.md\n",
    );
    const cut = await playTool(searchFiles, { path: folder, text: "x", max: 3 });
    deepStrictEqual(
      [cut.text.trimEnd().split("\n").length, cut.outcome.ok && cut.outcome.value],
      [3, "the first 3 lines; more are left"],
    );
    const nothing = await playTool(searchFiles, { path: folder });
    strictEqual(!nothing.outcome.ok && nothing.outcome.code, "nothing-asked");
  });
});
