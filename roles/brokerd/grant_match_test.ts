// Guards the evaluation of grants: denial is what is left, a deny dominates, nothing empty widens, and
// a higher label or an unrelated file never lets more through.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { DATA_CLASSES } from "../../shared/labels/label.ts";
import { builtInGrants } from "./builtin_grants.ts";
import { evaluate, type GrantSet, type NamedPath, type Question } from "./grant_match.ts";
import { type AllowGrant, type DenyGrant, type Grant, GrantFile } from "./grant_schema.ts";

const NOW = Date.UTC(2026, 10, 30);
const SHA = "0".repeat(64);

const setOf = (grants: readonly Grant[], more: Partial<GrantSet> = {}): GrantSet => ({
  grants: [...builtInGrants("auto"), ...grants],
  blockedTools: new Set(),
  isAllBlocked: false,
  defaultLimits: { calls_per_turn: 5, calls_per_day: 50 },
  ...more,
});

const allow = (more: Partial<AllowGrant> = {}): AllowGrant => ({
  name: "g.toml",
  sha256: SHA,
  tool: "t",
  paths: ["/r/a"],
  real_paths: ["/r/a"],
  hosts: [],
  mode: "auto",
  write: false,
  max_taint: "private",
  when_untrusted: "ask",
  result_class: "private",
  untrusted: true,
  approver: "any",
  limits: {},
  ...more,
});

const deny = (more: Partial<DenyGrant> = {}): DenyGrant => ({
  name: "d.toml",
  sha256: SHA,
  tool: "t",
  paths: [],
  real_paths: [],
  hosts: [],
  mode: "deny",
  ...more,
});

const pathAt = (target: string, more: Partial<NamedPath> = {}): NamedPath => ({
  argument: "path",
  asked: target,
  target,
  opened: target,
  opensFolder: false,
  write: false,
  ...more,
});

const question = (more: Partial<Question> = {}): Question => ({
  tool: "t",
  args: {},
  paths: [pathAt("/r/a/f")],
  network: false,
  job: null,
  label: { class: "private", untrusted: false },
  nowUnixMs: NOW,
  isStopped: false,
  used: { turn: 0, day: 0 },
  ...more,
});

const rule = (grants: readonly Grant[], asked = question(), more: Partial<GrantSet> = {}) => {
  const verdict = evaluate(setOf(grants, more), asked);
  return verdict.verdict === "deny" ? verdict.code : verdict.verdict;
};

Deno.test("evaluate() each thing that does not hold denies by its own name", () => {
  strictEqual(rule([]), "no_grant");
  strictEqual(rule([allow({ tool: "other" })]), "no_grant");
  strictEqual(rule([allow({ expires: NOW })]), "expired");
  strictEqual(rule([allow({ paths: [], real_paths: [] })]), "path_outside");
  strictEqual(rule([allow({ real_paths: ["/r/ab"] })]), "path_outside");
  strictEqual(
    rule([allow()], question({ paths: [pathAt("/r/a/f", { write: true })] })),
    "path_read_only",
  );
  strictEqual(rule([allow()], question({ network: true })), "host_not_granted");
  strictEqual(rule([allow({ patterns: { q: ["a*"] } })]), "pattern_mismatch");
  for (const args of [{}, { q: [] }, { q: null }]) {
    const said = (globs: string[]) => rule([allow({ patterns: { q: globs } })], question({ args }));
    strictEqual(said(["*"]), "pattern_mismatch", "a star stood for what was left out");
    strictEqual(said(["", "a*"]), "auto");
  }
  strictEqual(rule([allow({ max_taint: "public" })]), "taint_exceeds");
  const untrusted = question({ label: { class: "private", untrusted: true } });
  strictEqual(rule([allow({ when_untrusted: "deny" })], untrusted), "untrusted_session");
  strictEqual(rule([allow()], question({ used: { turn: 5, day: 5 } })), "limit_reached");
  strictEqual(rule([allow()], question({ used: { turn: 0, day: 50 } })), "limit_reached");
  strictEqual(
    rule([allow({ limits: { calls_per_turn: 1 } })], question({ used: { turn: 1, day: 1 } })),
    "limit_reached",
  );
  strictEqual(rule([allow({ jobs: ["daily"] })]), "no_grant");
  strictEqual(rule([allow(), deny()]), "denied_by_grant");
  strictEqual(rule([allow()], question({ isStopped: true })), "stopped");
  strictEqual(rule([allow()], question(), { blockedTools: new Set(["t"]) }), "grants_invalid");
  strictEqual(rule([allow()], question(), { isAllBlocked: true }), "grants_invalid");
});

Deno.test("evaluate() what holds is let through: auto over ask, and ask in an untrusted session", () => {
  strictEqual(rule([allow()]), "auto");
  strictEqual(rule([allow({ mode: "ask" })]), "ask");
  strictEqual(rule([allow({ mode: "ask", name: "a" }), allow()]), "auto");
  const untrusted = question({ label: { class: "private", untrusted: true } });
  strictEqual(rule([allow()], untrusted), "ask");
  strictEqual(rule([allow({ when_untrusted: "same" })], untrusted), "auto");
  strictEqual(rule([allow({ mode: "ask", when_untrusted: "same" })], untrusted), "ask");
  strictEqual(rule([allow({ jobs: ["daily"] })], question({ job: "daily" })), "auto");
  strictEqual(rule([allow()], question({ job: "daily" })), "auto");
});

Deno.test("evaluate() of several grants that fit, the strictest word counts, whichever comes first", () => {
  const api = { name: "key", as: "header:X-Key" };
  const hosts = ["https://a.example:443", "https://b.example:443"];
  const loose = allow({
    name: "a.toml",
    result_class: "public",
    untrusted: false,
    hosts,
    secret: api,
  });
  const strict = allow({
    name: "b.toml",
    result_class: "private",
    hosts: hosts.slice(0, 1),
    approver: "local",
    limits: { timeout_s: 2 },
  });
  const asked = question({ network: true, args: { url: "https://a.example:443/" } });
  for (const grants of [[loose, strict], [strict, loose], [strict, loose, strict]]) {
    const verdict = evaluate(setOf(grants), asked);
    ok(verdict.verdict === "auto");
    const { grant } = verdict;
    strictEqual(grant.result_class, "private");
    strictEqual(grant.untrusted, true, "a file's name decided that a stranger's word is trusted");
    deepStrictEqual(grant.hosts, ["https://a.example:443"]);
    strictEqual(grant.approver, "local");
    strictEqual(grant.secret, undefined, "a secret went out that only one of them names");
    ok(verdict.limits.some((one) => one.timeout_s === 2));
  }
  const both = evaluate(setOf([loose, { ...loose, name: "c.toml" }]), asked);
  ok(both.verdict === "auto" && both.grant.secret?.name === "key" && !both.grant.untrusted);
  const other = { ...loose, secret: { name: "other", as: "header:X-Key" } };
  const two = evaluate(setOf([loose, other]), asked);
  ok(two.verdict === "auto" && two.grant.secret === undefined);
  const asking = evaluate(setOf([{ ...strict, mode: "ask" }, loose]), asked);
  ok(asking.verdict === "auto" && !asking.grant.untrusted, "auto counts alone, over ask");
});

Deno.test("evaluate() of several misses the nearest is named", () => {
  strictEqual(rule([allow({ expires: 1 }), allow({ real_paths: ["/x"] })]), "path_outside");
  strictEqual(
    rule([allow({ max_taint: "public" }), allow({ real_paths: ["/x"] })]),
    "taint_exceeds",
  );
});

Deno.test("evaluate() a deny ignores labels and reaches everything a call would open", () => {
  const secret = deny({ paths: ["/r/a/secret"], real_paths: ["/r/a/secret"] });
  const hits: NamedPath[] = [
    pathAt("/r/a/secret"),
    pathAt("/r/a/secret/x"),
    pathAt("/r/a/link", { target: "/r/a/secret/x", opened: "/r/a/secret/x" }),
    pathAt("/r/a/secret/x", { target: "/elsewhere", opened: "/elsewhere" }),
    pathAt("/r/a", { opensFolder: true }),
    pathAt("/r/a/new", { opened: "/r/a", opensFolder: true }),
    // One file on a disk that keeps names without their case, or composed.
    pathAt("/r/a/SECRET/x"),
  ];
  for (const hit of hits) {
    strictEqual(rule([allow(), secret], question({ paths: [hit] })), "denied_by_grant", hit.asked);
  }
  strictEqual(rule([allow(), secret], question({ paths: [pathAt("/r/a/secretx")] })), "auto");
  const accent = deny({ paths: ["/r/a/caf\u00e9"], real_paths: ["/r/a/caf\u00e9"] });
  const other = question({ paths: [pathAt("/r/a/cafe\u0301/x")] });
  strictEqual(rule([allow(), accent], other), "denied_by_grant");
  const greek = deny({ paths: ["/r/a/οδοσ"], real_paths: ["/r/a/οδοσ"] });
  for (const name of ["ΟΔΟΣ", "οδος"]) {
    const asked = question({ paths: [pathAt(`/r/a/${name}/x`)] });
    strictEqual(rule([allow(), greek], asked), "denied_by_grant", name);
  }
  const text = deny({ patterns: { q: ["*rm*"] } });
  strictEqual(
    rule([allow(), text], question({ args: { q: ["ls", "rm -rf"] } })),
    "denied_by_grant",
  );
  strictEqual(rule([allow(), text], question({ args: { q: "ls" } })), "auto");
  const host = deny({ hosts: ["https://evil.example:443"] });
  const args = { url: "https://EVIL.example/x?y" };
  strictEqual(rule([allow(), host], question({ args })), "denied_by_grant");
  for (
    const url of ["https://evil.example./", " https://evil.example/", "https://a@evil.example"]
  ) {
    strictEqual(rule([allow(), host], question({ args: { text: url } })), "denied_by_grant", url);
  }
});

Deno.test("evaluate() a call with network passes only with whole granted origins", () => {
  const grant = allow({ hosts: ["https://a.example:443"] });
  const asked = (url: unknown) => rule([grant], question({ network: true, args: { url } }));
  for (
    const url of [
      "http://a.example/",
      "https://a.example:444/",
      "https://a.example.evil.example/",
      "https://a.example@evil.example/",
      "https://a.example./",
      " https://a.example/",
      "https://a.example\\@evil.example/",
      "a.example",
      "ftp://a.example/",
      ["https://a.example/", "https://b.example/"],
    ]
  ) {
    strictEqual(asked(url), "host_not_granted", String(url));
  }
  strictEqual(asked("HTTPS://A.example/x?y#z"), "auto");
});

Deno.test("evaluate() a pattern holds for a URL as it would be dialled and read, not only as it is written", () => {
  const hosts = ["https://a.example:443"];
  const asked = (url: string) => question({ network: true, args: { url } });
  const open = allow({ hosts, patterns: { url: ["https://a.example/open/*"] } });
  for (
    const path of [
      "open/../private/x",
      "open/%2e%2e/private/x",
      "open/.%2E/private/x",
      "open/%2e%2e%2fprivate/x",
      "open/..%2Fprivate/x",
      "open/x?/../private",
    ]
  ) {
    const isInside = path.includes("?");
    const said = rule([open], asked(`https://a.example/${path}`));
    strictEqual(said, isInside ? "auto" : "pattern_mismatch", path);
  }
  strictEqual(rule([open], asked("https://a.example/open/x%20y?z=%2F#w")), "auto");
  const barred = [allow({ hosts }), deny({ patterns: { url: ["https://a.example/private/*"] } })];
  for (
    const url of [
      "https://a.example/private/x",
      "HTTPS://A.example/private/x",
      "https://a.example:443/private/x",
      "https://a.example/./private/x",
      "https://a.example/%70rivate/x",
      "https://a.example/open/../private/x",
      "https://a.example/open/..%2fprivate/x",
      "https://a.example/private/x#/open",
    ]
  ) {
    strictEqual(rule(barred, asked(url)), "denied_by_grant", url);
  }
  strictEqual(rule(barred, asked("https://a.example/open/private/x")), "auto");
  const ending = allow({ hosts, patterns: { url: ["https://a.example/*.html"] } });
  strictEqual(rule([ending], asked("https://a.example/private#x.html")), "pattern_mismatch");
  const exact = [allow({ hosts }), deny({ patterns: { url: ["https://a.example/private"] } })];
  strictEqual(rule(exact, asked("https://a.example/private#x")), "denied_by_grant");
  const word = deny({ patterns: { q: ["*caf\u00e9*"] } });
  strictEqual(rule([allow(), word], question({ args: { q: "a cafe\u0301" } })), "denied_by_grant");
  const named = deny({ patterns: { path: ["/r/a/secret/*"] } });
  const link = pathAt("/r/a/l/x", { target: "/r/a/secret/x", opened: "/r/a/secret/x" });
  const through = question({ args: { path: "/r/a/l/x" }, paths: [link] });
  strictEqual(rule([allow(), named], through), "denied_by_grant");
});

Deno.test("evaluate() a command is matched word by word, never as text", () => {
  const grant = allow({ commands: [["git", "log", "*"]] });
  const run = (argv: unknown) => rule([grant], question({ args: { argv } }));
  strictEqual(run(["git", "log", "x; rm -rf /"]), "auto");
  const shapes: unknown[] = [
    ["git", "log"],
    ["git", "log", "a", "b"],
    ["git log x"],
    ["sh", "-c", "git log x"],
    ["env", "git", "log", "x"],
    ["./git", "log", "x"],
    ["git", "log;rm", "x"],
    "git log x",
    [],
    ["git", "log", 1],
    ["git\n", "log", "x"],
    ["GIT", "log", "x"],
  ];
  for (const argv of shapes) strictEqual(run(argv), "pattern_mismatch", JSON.stringify(argv));
  strictEqual(rule([allow()], question({ args: { argv: ["ls"] } })), "pattern_mismatch");
});

Deno.test("evaluate() built-in grants hold whatever the files say", () => {
  const clock = question({ tool: "clock", paths: [] });
  strictEqual(rule([deny({ tool: "clock" })], clock), "denied_by_grant");
  strictEqual(rule([], clock, { isAllBlocked: true }), "auto");
  strictEqual(
    rule([], question({ tool: "recall", paths: [], label: { class: "secret", untrusted: true } })),
    "auto",
  );
});

const label = fc.record({ class: fc.constantFrom(...DATA_CLASSES), untrusted: fc.boolean() });
const somePath = fc.constantFrom("/r/a", "/r/a/f", "/r/b", "/r/b/c/d", "/x");
const arbAllow = fc.record({
  name: fc.constantFrom("a", "b", "c"),
  tool: fc.constantFrom("t", "u"),
  mode: fc.constantFrom("auto" as const, "ask" as const),
  real_paths: fc.uniqueArray(somePath, { maxLength: 2 }),
  write: fc.boolean(),
  max_taint: fc.constantFrom(...DATA_CLASSES),
  when_untrusted: fc.constantFrom("same" as const, "ask" as const, "deny" as const),
  expires: fc.constantFrom(undefined, NOW - 1, NOW + 1),
  patterns: fc.constantFrom(undefined, "*", "a*").map((glob) =>
    glob === undefined ? glob : { q: [glob] }
  ),
}).map((some) => allow({ ...some, paths: some.real_paths }));
const arbDeny = fc.record({
  name: fc.constantFrom("d", "e"),
  tool: fc.constantFrom("t", "u"),
  real_paths: fc.uniqueArray(somePath, { maxLength: 2 }),
}).map((some) => deny({ ...some, paths: some.real_paths }));
const arbGrants = fc.array(fc.oneof(arbAllow, arbAllow, arbDeny), { maxLength: 5 });
const arbQuestion = fc.record({
  tool: fc.constantFrom("t", "u"),
  paths: fc.array(fc.tuple(somePath, fc.boolean()), { maxLength: 2 }).map((all) =>
    all.map(([path, write]) => pathAt(path, { write }))
  ),
  args: fc.constantFrom({}, { q: "abc" }, { q: "zzz" }),
  label,
}).map((some) => question(some));
const height = (said: string) => said === "auto" ? 2 : said === "ask" ? 1 : 0;

const arbWord = fc.record({
  result_class: fc.constantFrom(...DATA_CLASSES),
  untrusted: fc.boolean(),
  approver: fc.constantFrom("any" as const, "local" as const),
  secret: fc.constantFrom(undefined, "a", "b").map((name) =>
    name === undefined ? name : { name, as: "stdin" }
  ),
  image: fc.constantFrom(undefined, "a".repeat(64), "b".repeat(64)),
});

Deno.test("evaluate() the order of files changes nothing, and one more that fits only makes it stricter", () => {
  const word = (grants: readonly Grant[], asked: Question) => {
    const verdict = evaluate(setOf(grants), asked);
    if (verdict.verdict === "deny") return { said: verdict.verdict };
    const { result_class, untrusted, approver, secret, image } = verdict.grant;
    return {
      said: verdict.verdict,
      result_class,
      untrusted,
      approver,
      image,
      secret: secret?.name,
    };
  };
  const both = fc.tuple(arbAllow, arbWord).map(([grant, more]): AllowGrant => ({
    ...grant,
    ...more,
  }));
  fc.assert(
    fc.property(fc.array(both, { maxLength: 4 }), both, arbQuestion, (grants, more, asked) => {
      const before = word(grants, asked);
      deepStrictEqual(word(grants.toReversed(), asked), before);
      const after = word([more, ...grants], asked);
      deepStrictEqual(word([...grants, more], asked), after);
      if (after.said !== before.said || after.said === "deny") return;
      const rank = (name: string | undefined) => DATA_CLASSES.findIndex((one) => one === name);
      ok(rank(after.result_class) >= rank(before.result_class));
      ok(after.untrusted === true || before.untrusted === false);
      ok(after.approver === "local" || before.approver === "any");
      ok(after.secret === undefined || after.secret === before.secret);
      ok(after.image === undefined || after.image === before.image);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("evaluate() a matching deny dominates whatever else is granted", () => {
  fc.assert(
    fc.property(arbGrants, arbQuestion, (grants, asked) => {
      const bare = deny({ tool: asked.tool });
      strictEqual(rule([...grants, bare], asked), "denied_by_grant");
      strictEqual(rule([bare, ...grants], asked), "denied_by_grant");
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("evaluate() a higher label never lets more through", () => {
  fc.assert(
    fc.property(arbGrants, arbQuestion, (grants, asked) => {
      const raised = [
        { ...asked.label, untrusted: true },
        ...DATA_CLASSES.slice(DATA_CLASSES.indexOf(asked.label.class))
          .map((higher) => ({ ...asked.label, class: higher })),
      ];
      const before = height(rule(grants, asked));
      for (const next of raised) ok(height(rule(grants, { ...asked, label: next })) <= before);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("evaluate() a grant for another tool changes nothing at all", () => {
  fc.assert(
    fc.property(arbGrants, arbQuestion, arbAllow, arbDeny, (grants, asked, more, less) => {
      const before = evaluate(setOf(grants), asked);
      const unrelated = [{ ...more, tool: "zz" }, { ...less, tool: "zz" }];
      deepStrictEqual(evaluate(setOf([...grants, ...unrelated]), asked), before);
      deepStrictEqual(evaluate(setOf([...unrelated, ...grants]), asked), before);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("evaluate() problem files never let more through", () => {
  fc.assert(
    fc.property(arbGrants, arbQuestion, fc.boolean(), (grants, asked, isAllBlocked) => {
      const more = { isAllBlocked, blockedTools: new Set(["t"]) };
      const said = rule(grants, asked, more);
      ok(height(said) <= height(rule(grants, asked)));
      if (isAllBlocked || asked.tool === "t") strictEqual(said, "grants_invalid");
    }),
    { numRuns: 500 },
  );
});

Deno.test("evaluate() nothing absent, empty, null or wild in a file ever widens a grant", () => {
  const full: Record<string, unknown> = {
    tool: "t",
    mode: "auto",
    paths: ["/r/a"],
    hosts: ["https://a.example:443"],
    patterns: { q: ["abc"] },
    commands: [["git", "log"]],
    jobs: ["daily"],
    max_taint: "private",
    result_class: "private",
  };
  const holds = question({
    args: { q: "abc", argv: ["git", "log"] },
    network: true,
    job: "daily",
    paths: [pathAt("/r/a/f")],
  });
  const outside = [
    { ...holds, paths: [pathAt("/x")] },
    { ...holds, args: { ...holds.args, u: "https://b.example/" } },
    { ...holds, args: { ...holds.args, argv: ["rm"] } },
    { ...holds, label: { class: "secret", untrusted: false } as const },
  ];
  const read = (file: unknown): Grant | null => {
    const parsed = GrantFile.safeParse(file);
    if (!parsed.success) return null;
    return { ...parsed.data, name: "g", sha256: SHA, real_paths: parsed.data.paths };
  };
  const whole = read(full);
  ok(whole !== null);
  strictEqual(rule([whole], holds), "auto");
  for (const asked of outside) strictEqual(height(rule([whole], asked)), 0);
  for (const key of ["paths", "hosts", "commands", "max_taint", "result_class", "tool", "mode"]) {
    for (const value of [undefined, null, [], [""], ["*"], {}, "", "*", 0, true, [[]], [null]]) {
      const changed = { ...full, [key]: value };
      if (value === undefined) delete changed[key];
      const grant = read(changed);
      if (grant === null) continue;
      for (const asked of outside) {
        strictEqual(height(rule([grant], asked)), 0, `${key} = ${JSON.stringify(value)}`);
      }
    }
  }
  for (const key of ["patterns", "jobs"]) {
    for (const value of [null, [], {}, "", [""], { q: [] }, { q: "" }, { q: [1] }]) {
      const grant = read({ ...full, [key]: value });
      if (grant === null) continue;
      strictEqual(height(rule([grant], holds)), 0, `${key} = ${JSON.stringify(value)}`);
    }
  }
});
