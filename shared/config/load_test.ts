import { deepStrictEqual, match, ok as assert, strictEqual, throws } from "node:assert";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { z } from "zod";
import { editDistance, nearestWord } from "./distance.ts";
import { lineOfKey, parseConfig } from "./load.ts";

const Schema = z.strictObject({
  inference: z.strictObject({
    upstream: z.string().max(20).default("x"),
    slots: z.int().min(0).max(9).default(1),
    sampling: z.strictObject({ temperature: z.number().default(0) }).prefault({}),
  }).prefault({}),
  mode: z.enum(["auto", "ask"]).default("ask"),
  roots: z.array(z.strictObject({ path: z.string() })).default([]),
  secrets: z.record(
    z.string(),
    z.union([z.strictObject({ file: z.string() }), z.strictObject({ env: z.string() })]),
  ).default({}),
});

function detailOf(toml: string): string {
  const result = parseConfig(Schema, toml, "/c/loopd.toml");
  if (result.ok) throw new Error(`accepted: ${toml}`);
  strictEqual(result.code, "config-invalid");
  assert(!result.detail.includes("\n"));
  return result.detail;
}

Deno.test("parseConfig() names file, line and nearest key of an unknown key", () => {
  const unknown = (line: number, key: string, near: string) =>
    `/c/loopd.toml:${line}: unknown key "${key}"; nearest known key is "${near}"`;
  strictEqual(
    detailOf('# a\n[inference]\nupstraem = "x"\n'),
    unknown(3, "upstraem", "upstream"),
  );
  strictEqual(
    detailOf("inference.sampling.temprature = 1"),
    unknown(1, "temprature", "temperature"),
  );
  strictEqual(detailOf("\n[inferense]\n"), unknown(2, "inferense", "inference"));
  strictEqual(
    detailOf('[[roots]]\npath = "/a"\n\n[[roots]]\npath = "/b"\npaht = "/c"\n'),
    unknown(6, "paht", "path"),
  );
  strictEqual(detailOf('[secrets]\nt = { fle = "/a" }\n'), unknown(2, "fle", "file"));
  match(detailOf("zzzzzzzz = 1"), /known keys are inference, mode, roots, secrets/);
  strictEqual(
    detailOf('mode = "ask"\n"\\u200b" = 1').startsWith("/c/loopd.toml:"),
    true,
  );
});

Deno.test("parseConfig() says what a wrong value must be, without quoting it", () => {
  strictEqual(
    detailOf('[inference]\n\nslots = "hunter2"'),
    '/c/loopd.toml:3: "inference.slots" must be number, found string',
  );
  strictEqual(
    detailOf('mode = "hunter2"'),
    '/c/loopd.toml:1: "mode" must be one of "auto", "ask"',
  );
  strictEqual(detailOf("[[roots]]\n"), '/c/loopd.toml:1: key "roots.0.path" is missing');
  match(detailOf("[inference]\nslots = 1.5"), /:2: "inference.slots" must be int/);
  match(detailOf("mode = 1979-05-27"), /:1: "mode" must be one of/);
  match(detailOf("inference = 3"), /:1: "inference" must be object, found number/);
  match(detailOf("[inference]\nslots = 10"), /:2: "inference.slots": .*<=9/);
  match(detailOf("x = 1\ny = 2\nmode = 3"), /and 1 more/);
});

Deno.test("parseConfig() points at the line and column of text that is no TOML", () => {
  match(detailOf('mode = "ask"\nmode = "ask"'), /^\/c\/loopd.toml:2:\d+: not TOML: /);
  match(detailOf("a = "), /^\/c\/loopd.toml:1:\d+: not TOML: /);
  match(detailOf("[inference\nslots=1"), /^\/c\/loopd.toml:1:\d+: not TOML: /);
});

Deno.test("parseConfig() gives defaults for an empty text and freezes the value", () => {
  const result = parseConfig(Schema, "", "f");
  assert(result.ok);
  strictEqual(result.value.inference.upstream, "x");
  throws(() => Object.assign(result.value.inference, { upstream: "y" }), TypeError);
});

Deno.test("parseConfig() never throws and never accepts a key the schema lacks", () => {
  const key = fc.stringMatching(/^[a-z_]{1,12}$/);
  const table = fc.dictionary(key, fc.oneof(fc.integer({ min: 0, max: 9 }), fc.string()), {
    minKeys: 1,
    maxKeys: 4,
  });
  fc.assert(fc.property(table, key, (values, name) => {
    fc.pre(name !== "inference");
    const toml = stringify({ [name]: values });
    const result = parseConfig(Schema, toml, "f");
    assert(name === "secrets" || name === "roots" || !result.ok, toml);
    assert(!parseConfig(Schema, stringify({ inference: { ...values, zz: 1 } }), "f").ok);
  }));
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    parseConfig(Schema, text, "f");
  }));
});

Deno.test("lineOfKey() finds every key that a printer wrote", () => {
  const toml = [
    'a = """',
    "b = 1",
    '"""',
    "b = 2 # b",
    '"c d".e = 3',
    "[t.u]",
    "v = [",
    "  1,",
    "]",
    "[[w]]",
    "x = 1",
    "[[w]]",
    "x = 2",
    "[w.y]",
    "z = 3",
  ].join("\n");
  const expected: readonly (readonly [number, readonly PropertyKey[]])[] = [
    [1, ["a"]],
    [4, ["b"]],
    [5, ["c d", "e"]],
    [6, ["t", "u"]],
    [7, ["t", "u", "v", 0]],
    [11, ["w", 0, "x"]],
    [13, ["w", 1, "x"]],
    [15, ["w", 1, "y", "z"]],
    [1, ["nowhere"]],
  ];
  for (const [line, path] of expected) strictEqual(lineOfKey(toml, path), line, String(path));
});

Deno.test("editDistance() is a distance and nearestWord() refuses to guess", () => {
  strictEqual(editDistance("upstraem", "upstream"), 1);
  strictEqual(editDistance("", "abc"), 3);
  const word = fc.string({ maxLength: 8 });
  fc.assert(fc.property(word, word, (a, b) => {
    strictEqual(editDistance(a, b), editDistance(b, a));
    strictEqual(editDistance(a, b) === 0, a === b);
  }));
  deepStrictEqual(nearestWord("completely", ["other", "words"]), null);
  strictEqual(nearestWord("x", ["y"]), null);
});
