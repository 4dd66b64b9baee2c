// Guards what the owner is told about a call that was not made: each grant's word, the nearest miss, and
// what holds when several fit; and that being told changes nothing.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { grantToml, ROOT, testHouse } from "../../tests/doubles/broker_house.ts";
import { explain } from "./explain.ts";

/** What is explained for a listing of `path` under these grants. */
async function explained(
  grants: Readonly<Record<string, string>>,
  path: string,
  untrusted = false,
) {
  const test = testHouse({ grants });
  const house = test.open();
  const before = house.audit.head();
  const label = { class: "private", untrusted } as const;
  const asked = { tool: "list_dir", session: null, label };
  const said = explain(house, asked, JSON.stringify({ path }));
  deepStrictEqual([house.audit.head(), test.fake.runs.length], [before, 0]);
  await house.close();
  return said;
}

Deno.test("explain() names the nearest miss, and what keeps a file from counting", async () => {
  const far = grantToml("list_dir", "auto").replace(ROOT, `${ROOT}/other`);
  const near = grantToml("list_dir", "auto").replace(
    'max_taint = "private"',
    'max_taint = "public"',
  );
  const missed = await explained({ "far.toml": far, "near.toml": near }, ROOT);
  deepStrictEqual([missed.verdict, missed.code], ["deny", "taint_exceeds"]);
  ok(missed.lines.includes("grant far.toml: path_outside"), missed.lines.join("\n"));
  ok(missed.lines.at(-1)?.endsWith("(near.toml)"), missed.lines.join("\n"));
  const broken = await explained({ "bad.toml": `${near}pathz = []\n`, "near.toml": near }, ROOT);
  strictEqual(broken.code, "grants_invalid");
  ok(broken.lines.some((line) => /^bad\.toml does not count: .*pathz/.test(line)));
});

Deno.test("explain() names every grant that fits, and the label that all of them leave", async () => {
  const trusted = grantToml("list_dir", "auto");
  const strange = trusted.replace("untrusted = false", "untrusted = true");
  const both = await explained({ "a.toml": trusted, "b.toml": strange }, ROOT);
  strictEqual(both.verdict, "auto");
  ok(both.lines.includes("auto by grant a.toml and by b.toml"), both.lines.join("\n"));
  strictEqual(both.lines.at(-1), "its result will be private, untrusted");
  const asking = await explained({ "a.toml": trusted }, ROOT, true);
  deepStrictEqual([asking.verdict, asking.lines.at(-2)], ["ask", "ask by grant a.toml"]);
  strictEqual(asking.lines.at(-1), "its result will be private, trusted");
});
