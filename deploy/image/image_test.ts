// Guards the image builder: the digest is a function of the files, nothing unlisted gets in, and the
// archive is one that others read.
import { deepStrictEqual, notStrictEqual, ok as isTrue, strictEqual, throws } from "node:assert";
import { buildImage, NO_EXTRA } from "./build.ts";
import type { Sources } from "./contents.ts";
import { moduleFiles } from "./modules.ts";
import { tarOf } from "./tar.ts";
import { file, tree, type TreeEntry } from "./tree.ts";

const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname);
const bytes = (text: string) => new TextEncoder().encode(text);

/** The real sources with small stand-ins for Deno and the libraries. */
function sources(changes: Readonly<Record<string, string>> = {}): Sources {
  return {
    source: (path) => changes[path] ?? Deno.readTextFileSync(`${ROOT}${path}`),
    host: (path) => bytes(changes[path] ?? `bytes of ${path}`),
    deno: "/usr/local/bin/deno",
  };
}

function digest(changes: Readonly<Record<string, string>> = {}): string {
  return buildImage(sources(changes), NO_EXTRA, "1.2.3").names.digest;
}

Deno.test("buildImage() another byte in a library, in Deno or in a tool is another digest", () => {
  const plain = digest();
  strictEqual(digest(), plain);
  notStrictEqual(digest({ "/lib/x86_64-linux-gnu/libc.so.6": "another libc" }), plain);
  notStrictEqual(digest({ "/usr/local/bin/deno": "another deno" }), plain);
  const main = Deno.readTextFileSync(`${ROOT}toolkit/read_file/main.ts`);
  notStrictEqual(digest({ "toolkit/read_file/main.ts": `${main}// x\n` }), plain);
});

Deno.test("buildImage() the image holds one program and scripts, and no shell", () => {
  const { files, names } = buildImage(sources(), NO_EXTRA, "1.2.3");
  const list: readonly { path: string; type: string; mode: number }[] = JSON.parse(
    new TextDecoder().decode(files.get("files.json")),
  );
  const programs = list.filter((entry) => entry.type === "file" && !entry.path.startsWith("lib"));
  for (const { path, mode } of programs) {
    isTrue(path === "bin/deno" || /^tk\/.*\.js$|^etc\/[a-z.]+$/.test(path), path);
    strictEqual(mode, path === "bin/deno" ? 0o755 : 0o644, path);
  }
  deepStrictEqual(
    list.filter(({ path }) => /^tk\/[^/]*\.js$/.test(path)).map(({ path }) => path),
    "edit_file http_fetch list_dir probe read_file run_command search_files write_file".split(" ")
      .map((name) => `tk/${name}.js`),
  );
  isTrue(new TextDecoder().decode(files.get("catalog.json")).includes('"name":"write_file"'));
  strictEqual(new TextDecoder().decode(files.get("catalog.json")).includes("probe"), false);
  const tar = new TextDecoder("latin1").decode(files.get("oci.tar"));
  isTrue(tar.includes(`"boxmaker.catalog":"${names.catalog}","boxmaker.files":"${names.files}"`));
});

Deno.test("tree() takes no path that could leave the image or be there twice", () => {
  for (const path of ["/a", "a/../b", "..", "a//b", "", "a/", "./a", "a b", "x".repeat(100)]) {
    throws(() => tree([file(path, bytes("x"))]), TypeError, path);
  }
  throws(() => tree([file("a", bytes("x")), file("a", bytes("y"))]), TypeError);
});

Deno.test("moduleFiles() takes nothing from outside the source folder", () => {
  for (
    const line of [
      'import { z } from "zod";',
      'import x from "npm:x";',
      'import "./side.ts";',
      'import { x } from "../../x.ts";',
      'import { x } from "./a/../../../x.ts";',
    ]
  ) {
    throws(() => moduleFiles([{ name: "t", main: "t/main.ts" }], () => line), TypeError, line);
  }
});

Deno.test("moduleFiles() takes of packages the listed files alone, unchanged, as the lock names them", () => {
  const { files } = buildImage(sources(), NO_EXTRA, "1.2.3");
  const list: readonly { path: string }[] = JSON.parse(
    new TextDecoder().decode(files.get("files.json")),
  );
  deepStrictEqual(
    list.map(({ path }) => path).filter((path) => /^tk\/npm\/.*\.js$/.test(path)),
    [
      "tk/npm/entities-7.0.1/dist/esm/decode-codepoint.js",
      "tk/npm/entities-7.0.1/dist/esm/decode.js",
      "tk/npm/entities-7.0.1/dist/esm/generated/decode-data-html.js",
      "tk/npm/entities-7.0.1/dist/esm/generated/decode-data-xml.js",
      "tk/npm/entities-7.0.1/dist/esm/internal/bin-trie-flags.js",
      "tk/npm/entities-7.0.1/dist/esm/internal/decode-shared.js",
      "tk/npm/htmlparser2-10.1.0/dist/esm/Parser.js",
      "tk/npm/htmlparser2-10.1.0/dist/esm/Tokenizer.js",
    ],
  );
  throws(() => digest({ "deno.lock": "{}" }), /does not name/);
  const from = 'import { x } from "entities/escape";';
  throws(() => moduleFiles([{ name: "t", main: "t/main.ts" }], () => from), TypeError);
});

Deno.test("moduleFiles() leaves the words of a program as they are", () => {
  const code: Readonly<Record<string, string>> = {
    "toolkit/t/main.ts":
      'import { a, type B } from "./a.ts";\nimport type { C } from "./c.ts";\nconst t: B = `x\n\n  y `;\na(t as C);\n',
    "toolkit/t/a.ts": 'export { a } from "../../shared/a.ts";\n',
    "shared/a.ts": "export function a(x: string): void {}\n",
  };
  const made = moduleFiles(
    [{ name: "t", main: "toolkit/t/main.ts" }],
    (path) => code[path] ?? "missing",
  );
  const scripts = new Map(made.map((entry) => [entry.path, textOf(entry)]));
  deepStrictEqual([...scripts.keys()].toSorted(), [
    "tk/lib/shared/a.js",
    "tk/lib/toolkit/t/a.js",
    "tk/t.js",
  ]);
  isTrue(scripts.get("tk/t.js")?.includes('from "./lib/toolkit/t/a.js"'));
  isTrue(scripts.get("tk/t.js")?.includes("= `x\n\n  y `;"));
  isTrue(scripts.get("tk/lib/toolkit/t/a.js")?.includes('from "../../shared/a.js"'));
});

function textOf(entry: TreeEntry): string {
  return entry.type === "file" ? new TextDecoder().decode(entry.bytes) : "";
}

Deno.test("tarOf() writes what tar reads", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "bx-tar-" });
  try {
    const entries = tree([
      file("a/b", bytes("x".repeat(513)), 0o755),
      { path: "a/link", type: "link", target: "b" },
      { path: "tmp", type: "folder", mode: 0o1777 },
    ]);
    Deno.writeFileSync(`${folder}/t.tar`, tarOf(entries));
    const { code, stdout } = await new Deno.Command("tar", {
      args: ["--numeric-owner", "--utc", "-tvf", `${folder}/t.tar`],
    }).output();
    strictEqual(code, 0);
    deepStrictEqual(new TextDecoder().decode(stdout).trimEnd().split("\n"), [
      "drwxr-xr-x 0/0               0 1970-01-01 00:00 a/",
      "-rwxr-xr-x 0/0             513 1970-01-01 00:00 a/b",
      "lrwxrwxrwx 0/0               0 1970-01-01 00:00 a/link -> b",
      "drwxrwxrwt 0/0               0 1970-01-01 00:00 tmp/",
    ]);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});
