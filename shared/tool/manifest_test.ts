// Guards the catalogue: a tool that says too little, or something else than its digest, is no tool.
import { deepStrictEqual, ok as isTrue, strictEqual, throws } from "node:assert";
import { catalogBytes, readCatalog } from "./catalog.ts";
import { sha256Hex } from "./digest.ts";
import { Manifest } from "./manifest.ts";

const GOOD: Manifest = {
  name: "look",
  description: "Looks.",
  parameters: {
    type: "object",
    properties: { path: { type: "string", description: "Where", maxLength: 10 } },
    required: ["path"],
    additionalProperties: false,
  },
  paths: [{ argument: "path", need: "file", write: false }],
  effect: "none",
  network: false,
  scratch: false,
  env: [],
  limits: { timeout_s: 1, output_bytes: 1, memory_mb: 32, pids: 16 },
  summarise: false,
};

Deno.test("Manifest refuses what would widen a tool unseen", () => {
  const evil: readonly object[] = [
    { ...GOOD, shell: true },
    { ...GOOD, name: "Look" },
    { ...GOOD, parameters: { ...GOOD.parameters, additionalProperties: true } },
    { ...GOOD, parameters: { ...GOOD.parameters, required: ["other"] } },
    { ...GOOD, paths: [{ argument: "other", need: "file", write: false }] },
    { ...GOOD, paths: [{ argument: "path", need: "file", write: true }] },
    { ...GOOD, network: true },
    { ...GOOD, env: ["ld_preload"] },
    { ...GOOD, limits: { ...GOOD.limits, pids: 15 } },
  ];
  for (const manifest of evil) {
    strictEqual(Manifest.safeParse(manifest).success, false, JSON.stringify(manifest));
  }
  isTrue(Manifest.safeParse(GOOD).success);
});

Deno.test("readCatalog() takes only the bytes that the digest names, in their one form", () => {
  const bytes = catalogBytes([{ ...GOOD, name: "b_tool" }, { ...GOOD, name: "a_tool" }]);
  const read = readCatalog(bytes, sha256Hex(bytes));
  deepStrictEqual(read.ok && read.value.tools.map((tool) => tool.name), ["a_tool", "b_tool"]);
  const changed = bytes.slice();
  changed[bytes.length - 3] = 32;
  const wrong = readCatalog(changed, sha256Hex(bytes));
  strictEqual(!wrong.ok && wrong.code, "catalog-mismatch");
  const spaced = new TextEncoder().encode(`${new TextDecoder().decode(bytes)} `);
  strictEqual(readCatalog(spaced, sha256Hex(spaced)).ok, false);
});

Deno.test("catalogBytes() refuses a name that is there twice", () => {
  throws(() => catalogBytes([GOOD, GOOD]));
});
