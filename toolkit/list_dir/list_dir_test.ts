// Guards list_dir: every entry once, sorted, links never followed, and no line can be forged by a name.
import { deepStrictEqual, strictEqual } from "node:assert";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { listDir } from "./list_dir.ts";

Deno.test("listDir() does not go through a link", async () => {
  await inFolder(async (folder) => {
    Deno.mkdirSync(`${folder}/in`);
    Deno.writeTextFileSync(`${folder}/in/file`, "12");
    Deno.symlinkSync("/etc", `${folder}/etc`);
    Deno.symlinkSync(".", `${folder}/loop`);
    const { text } = await playTool(listDir, { path: folder, depth: 8 });
    strictEqual(
      text,
      "link         - etc -> /etc\nfolder       - in/\nfile         2 in/file\nlink         - loop -> .\n",
    );
    const refused = await playTool(listDir, { path: `${folder}/etc` });
    strictEqual(!refused.outcome.ok && refused.outcome.code, "not-a-folder");
  });
});

Deno.test("listDir() shows names so that none can pass for another line or name", async () => {
  await inFolder(async (folder) => {
    const names = ["a\nfile 9 b", "c\u202ed", "\\u{202e}", " ", "ä", "e\u0001"];
    for (const name of names) Deno.writeTextFileSync(`${folder}/${name}`, "");
    const { text } = await playTool(listDir, { path: folder });
    const lines = text.trimEnd().split("\n");
    strictEqual(lines.length, names.length);
    strictEqual(new Set(lines).size, names.length);
    strictEqual(text.includes("\u202e") || text.includes("\u0001"), false);
  });
});

Deno.test("listDir() stops at its limit and says that more are left", async () => {
  await inFolder(async (folder) => {
    for (let i = 0; i < 12; i++) Deno.writeTextFileSync(`${folder}/${i}`, "");
    const cut = await playTool(listDir, { path: folder, max: 11 });
    deepStrictEqual(
      [cut.text.trimEnd().split("\n").length, cut.outcome.ok && cut.outcome.value],
      [11, "the first 11 entries; more are left"],
    );
    const all = await playTool(listDir, { path: folder, max: 12 });
    strictEqual(all.outcome.ok && all.outcome.value, "12 entries");
  });
});

Deno.test("listDir() refuses what is not there", async () => {
  const { outcome } = await playTool(listDir, { path: "/nonexistent/bx" });
  strictEqual(!outcome.ok && outcome.code, "not-found");
});
