// Guards what brokerd knows of tools: only what the image names by digest, and arguments that are
// exactly what the schema says.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { readCatalog } from "../../shared/tool/catalog.ts";
import { Manifest } from "../../shared/tool/manifest.ts";
import { makeDisk } from "../../tests/doubles/broker_house.ts";
import { BUILT_IN_TOOLS, PLACES } from "./builtin_tools.ts";
import { builtInGrants } from "./builtin_grants.ts";
import { loadTools, parseArguments, searchTools } from "./catalog.ts";

const IMAGE = "/srv/image";

Deno.test("loadTools() a catalogue that the image does not name leaves the built-in tools alone", () => {
  const disk = makeDisk({});
  strictEqual(loadTools(disk, IMAGE).problem, null);
  disk.plant(`${IMAGE}/catalog.json`, encodeUtf8('{"v":1,"tools":[]}'));
  const changed = loadTools(disk, IMAGE);
  strictEqual(changed.problem?.code, "catalog-mismatch");
  strictEqual(changed.find("read_file"), null);
  ok(changed.find("clock") !== null);
  disk.unlink(`${IMAGE}/image.json`);
  strictEqual(loadTools(disk, IMAGE).problem?.code, "image-missing");
});

Deno.test("loadTools() its catalogues can be had by digest, and nothing else can", () => {
  const tools = loadTools(makeDisk({}), IMAGE);
  strictEqual(tools.digests().length, 2);
  strictEqual(tools.digests()[0], tools.image?.catalog);
  for (const digest of tools.digests()) {
    const bytes = tools.bytes(digest);
    ok(bytes !== null && readCatalog(bytes, digest).ok);
  }
  strictEqual(tools.bytes("0".repeat(64)), null);
  for (const tool of BUILT_IN_TOOLS) ok(Manifest.safeParse(tool).success, tool.name);
});

Deno.test("builtInGrants() every built-in tool has a policy, and each policy its own hash", () => {
  for (const setting of ["auto", "ask"] as const) {
    const grants = builtInGrants(setting);
    deepStrictEqual(new Set(grants.map((grant) => grant.tool)), new Set(Object.keys(PLACES)));
    strictEqual(new Set(grants.map((grant) => grant.sha256)).size, grants.length);
  }
  const modes = (setting: "auto" | "ask") =>
    builtInGrants(setting).filter((grant) => grant.tool === "memory").map((grant) => grant.mode);
  deepStrictEqual([modes("auto"), modes("ask")], [["auto"], ["ask", "auto", "auto"]]);
});

Deno.test("parseArguments() what is not exactly one object of the schema is refused", () => {
  const tool = loadTools(makeDisk({}), IMAGE).find("read_file");
  ok(tool !== null);
  const bad = [
    "",
    "{",
    "null",
    "[]",
    '"x"',
    "{}",
    '{"path":1}',
    '{"path":"/a","more":1}',
    '{"path":"/a","offset":-1}',
    '{"path":"/a","offset":1.5}',
    '{"path":"/a","offset":"1"}',
    `{"path":"${"a".repeat(4_097)}"}`,
    '{"path":"\\ud800"}',
    '{"path":"/a","__proto__":{}}',
    '{"path":"/a"}{"path":"/b"}',
    "[".repeat(100) + "]".repeat(100),
  ];
  for (const text of bad) ok(!parseArguments(tool, text).ok, text.slice(0, 60));
  const good = parseArguments(tool, ' {"limit" : 5, "path": "/a"} ');
  ok(good.ok);
  strictEqual(JSON.stringify(good.value), '{"limit":5,"path":"/a"}');
});

Deno.test("searchTools() finds by name and description, the best first", () => {
  const tools = loadTools(makeDisk({}), IMAGE);
  strictEqual(searchTools(tools, "write a file")[0]?.manifest.name, "write_file");
  strictEqual(searchTools(tools, "zzzz").length, 0);
  strictEqual(searchTools(tools, "").length, tools.all().length);
});
