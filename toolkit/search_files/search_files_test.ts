// Guards search_files: plain text in linear time, no link followed, nothing binary printed.
import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { nameMatches } from "./name_glob.ts";
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

/** The same question by recursion over every split: slow and plainly right. */
function slowMatch(glob: string, name: string): boolean {
  if (glob === "") return name === "";
  if (glob.startsWith("*")) {
    return slowMatch(glob.slice(1), name) || (name !== "" && slowMatch(glob, name.slice(1)));
  }
  return name !== "" && (glob[0] === "?" || glob[0] === name[0]) &&
    slowMatch(glob.slice(1), name.slice(1));
}

Deno.test("nameMatches() agrees with the plain definition", () => {
  const letters = (of: string, maxLength: number) =>
    fc.array(fc.constantFrom(...of), { maxLength }).map((all) => all.join(""));
  fc.assert(fc.property(letters("ab*?", 8), letters("ab", 8), (glob, name) => {
    strictEqual(nameMatches(glob, name), slowMatch(glob, name));
  }));
});

Deno.test("nameMatches() takes a glob made to be slow", () => {
  strictEqual(nameMatches(`${"*a".repeat(90)}b`, "a".repeat(255)), false);
});
