// Guards read_file: exact bytes or a plain refusal, and never through a link.
import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { inFolder, playTool } from "../../tests/doubles/tool_call.ts";
import { denoFiles } from "../../shared/tool/deno_tool.ts";
import { readFile } from "./read_file.ts";

Deno.test("readFile() follows no link and reads no folder or device", async () => {
  await inFolder(async (folder) => {
    Deno.writeTextFileSync(`${folder}/secret`, "secret");
    Deno.symlinkSync(`${folder}/secret`, `${folder}/link`);
    Deno.symlinkSync(`${folder}/nowhere`, `${folder}/dangling`);
    for (
      const [path, code] of [
        [`${folder}/link`, "not-a-file"],
        [`${folder}/dangling`, "not-a-file"],
        [folder, "not-a-file"],
        ["/dev/zero", "not-a-file"],
        [`${folder}/none`, "not-found"],
      ] as const
    ) {
      const { outcome, bytes } = await playTool(readFile, { path });
      deepStrictEqual([!outcome.ok && outcome.code, bytes.length], [code, 0], path);
    }
  });
});

Deno.test("readFile() refuses a file that is replaced while it is opened", async () => {
  await inFolder(async (folder) => {
    Deno.writeTextFileSync(`${folder}/a`, "a");
    Deno.writeTextFileSync(`${folder}/b`, "b");
    const { outcome, bytes } = await playTool(readFile, { path: `${folder}/a` }, {
      open: (_path, how) => denoFiles.open(`${folder}/b`, how),
    });
    deepStrictEqual([!outcome.ok && outcome.code, bytes.length], ["changed", 0]);
  });
});

Deno.test("readFile() gives exactly the bytes asked for", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/data`;
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200_000 }),
        fc.nat(210_000),
        fc.integer({ min: 1, max: 210_000 }),
        async (data, offset, limit) => {
          Deno.writeFileSync(path, data);
          const { outcome, bytes } = await playTool(readFile, { path, offset, limit });
          strictEqual(outcome.ok, offset <= data.length);
          deepStrictEqual(bytes, data.slice(offset, offset + limit));
        },
      ),
      { numRuns: 30 },
    );
  });
});

Deno.test("readFile() says which part came and how much there is", async () => {
  await inFolder(async (folder) => {
    Deno.writeTextFileSync(`${folder}/a`, "0123456789");
    const { outcome, text } = await playTool(readFile, {
      path: `${folder}/a`,
      offset: 2,
      limit: 3,
    });
    deepStrictEqual([outcome.ok && outcome.value, text], ["bytes 2 to 5 of 10", "234"]);
  });
});
