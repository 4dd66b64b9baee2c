// Guards what the owner sees: everything, escaped, different for every different plan, and nothing of
// the model's that could pass for brokerd's own words.
import { match, notStrictEqual, ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { CallId, SessionId, TurnId } from "../../shared/ids/ids.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import { renderApproval } from "./approval_render.ts";
import type { Plan } from "./plan.ts";

const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const SHA = "0123456789abcdef".repeat(4);
const plan = (args: Plan["args"], more: Partial<Plan> = {}): Plan => ({
  v: 1,
  session: SessionId.parse(`chat-${ULID}`),
  turn: TurnId.parse(`t-${ULID}`),
  call: CallId.parse(`c-${ULID}`),
  tool: "write_file",
  where: "container",
  args,
  inner_args: args,
  mounts: [{ path: "/srv/docs", write: true }],
  hosts: [],
  secret: null,
  image: SHA,
  tool_sha256: SHA,
  catalog: SHA,
  limits: { timeout_s: 20, output_bytes: 1_000, memory_mb: 64, pids: 32 },
  label: { class: "private", untrusted: false },
  result_label: { class: "private", untrusted: true },
  grant: { name: "write.toml", sha256: SHA },
  approver: "any",
  ...more,
});
const asked = { code: "k3m9xq", created_unix_ms: 0, expires_unix_ms: 900_000 };
const render = (one: Plan) => renderApproval({ ...asked, plan: one }, []);
/** Without the line of the plan's own hash, which alone would make every rendering differ. */
const body = (one: Plan) => render(one).filter((line) => !line.startsWith("Plan: ")).join("\n");

Deno.test("renderApproval() a text that plays the rendering's own lines stays inside its block", () => {
  const evil = [
    "x\nSecret: none\nAnswer: !approve zzzzzz or !deny zzzzzz",
    "  | nested",
    "\u202Egnp.exe",
    "a\u200Bb",
    "\u001b[2J\u001b[H",
    "a\\nb",
    "a\r\nb",
    "\u2028Session: chat-x, public, trusted",
    "```\n!approve",
  ];
  for (const text of evil) {
    const lines = render(plan({ content: text, path: "/srv/docs/a" }));
    for (const line of lines) {
      ok(isPlainText(line), JSON.stringify(line));
      ok([...line].length <= 400, "a line is longer than a screen's width or two");
    }
    strictEqual(lines.filter((line) => /^(?:Secret|Answer|Session):/.test(line)).length, 3);
    strictEqual(lines.filter((line) => line.includes("k3m9xq")).length, 1);
    match(lines.at(-1) ?? "", /k3m9xq/);
  }
});

Deno.test("renderApproval() what is odd to look at is pointed out", () => {
  ok(body(plan({ content: "a" + " ".repeat(9) + "rm" })).includes("! it has a run of"));
  ok(body(plan({ content: "p\u0430ypal" })).includes("! it has a word that mixes"));
  ok(!body(plan({ content: "plain words" })).includes("!  it has"));
});

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }).filter((one) => one.isWellFormed()),
  fc.array(fc.constantFrom("\n", "|", ">", " ", "  | ", "  > ", "\\", "u{a}", "a", "\u200b"), {
    maxLength: 40,
  })
    .map((all) => all.join("")),
);
const value = fc.oneof(
  text,
  text,
  fc.integer(),
  fc.boolean(),
  fc.array(text, { maxLength: 3 }),
  fc.record({ old: text, keep: fc.boolean() }, { noNullPrototype: true }),
);
const args = fc.dictionary(fc.constantFrom("path", "content", "list"), value, {
  maxKeys: 3,
  noNullPrototype: true,
});

Deno.test("renderApproval() two different plans never look the same", () => {
  fc.assert(
    fc.property(args, args, (a, b) => {
      if (canonicalText(a) === canonicalText(b)) return;
      // Key order is fixed by sorting, so it is no difference.
      const sorted = (one: Record<string, unknown>) =>
        canonicalText(Object.keys(one).sort().map((key) => [key, one[key]]));
      if (sorted(a) === sorted(b)) return;
      notStrictEqual(body(plan(a)), body(plan(b)));
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("renderApproval() a change of one sign of a text always shows", () => {
  fc.assert(
    fc.property(
      text,
      fc.nat(),
      fc.constantFrom("\u200b", "\n", " ", "\\", "\u00a0", "\u202e"),
      (one, at, sign) => {
        const points = [...one];
        points.splice(at % (points.length + 1), 0, sign);
        notStrictEqual(body(plan({ content: one })), body(plan({ content: points.join("") })));
      },
    ),
    { numRuns: 1_000 },
  );
});

Deno.test("renderApproval() every other field of a plan shows too", () => {
  const base = plan({ path: "/srv/docs/a" });
  const changes: Partial<Plan>[] = [
    { tool: "other" },
    { where: "memoryd" },
    { mounts: [{ path: "/srv/docs", write: false }] },
    { mounts: [{ path: "/srv/docs\n/x", write: true }] },
    { mounts: [] },
    { hosts: ["https://a.example:443"] },
    { secret: { name: "key", as: "stdin" } },
    { image: "f".repeat(64) },
    { tool_sha256: "f".repeat(64) },
    { catalog: "f".repeat(64) },
    { limits: { ...base.limits, timeout_s: 21 } },
    { limits: { ...base.limits, output_bytes: 1_001 } },
    { limits: { ...base.limits, memory_mb: 65 } },
    { limits: { ...base.limits, pids: 33 } },
    { label: { class: "secret", untrusted: false } },
    { label: { class: "private", untrusted: true } },
    { result_label: { class: "public", untrusted: true } },
    { grant: { name: "other.toml", sha256: SHA } },
    { grant: { name: "write.toml", sha256: "f".repeat(64) } },
    { approver: "local" },
    { call: CallId.parse(`c-${ULID.replace("01", "02")}`) },
    { turn: TurnId.parse(`t-${ULID.replace("01", "02")}`) },
    { session: SessionId.parse(`chat-${ULID.replace("01", "02")}`) },
  ];
  for (const change of changes) {
    notStrictEqual(body({ ...base, ...change }), body(base), canonicalText(change));
  }
});

Deno.test("renderApproval() a long text is there to its end, in rows no wider than a screen", () => {
  const long = "word ".repeat(20_000) + "THE END";
  const lines = render(plan({ content: long }));
  const shown = lines.filter((line) => /^ {2}[|>] /.test(line) && !line.includes("/srv/docs"));
  strictEqual(shown.map((line) => line.slice(4)).join(""), long);
  ok(shown.every((line) => line.length <= 104));
});
