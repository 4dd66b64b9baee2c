// Guards: "one self-contained page; all text escaped; the turns, the cache reuse per request, the
// decisions about tools, where taint entered" and the words of `cache` and `status`.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { ok } from "../../shared/results/result.ts";
import { SessionId, TurnId } from "../../shared/ids/ids.ts";
import { parseSessionRecord, type SessionRecord } from "../../shared/session_log/records.ts";
import { on } from "../../shared/wire/listen.ts";
import { CACHE_REPORT, LOOP_STATUS, SESSION_LOG } from "../../shared/wire/loop.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { ownerRig } from "../../tests/doubles/house/owner_rig.ts";
import { sessionPage } from "./session_page.ts";

const ULID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";
const session = SessionId.parse(`chat-${ULID}`);
const turn = TurnId.parse(`t-${ULID}`);
const EVIL = `</pre></title><script>alert(1)</script><img src=x onerror=alert(1)>"'&\u202e\x1b[2J`;

function record(fields: object): SessionRecord {
  const parsed = parseSessionRecord({ time_unix_ms: 0, ...fields });
  if (!parsed.ok) throw new Error(parsed.detail);
  return parsed.value;
}

const timings = (cache_n: number, prompt_n: number, predicted_n: number) => ({
  ...{ cache_n, prompt_n, predicted_n, prompt_ms: 1, predicted_ms: 1 },
});
const call = {
  ...{ call: `c-${ULID}`, name: EVIL.slice(0, 200) },
  ...{ arguments: `{"x":"${"<".repeat(9)}"}`, artifact: null },
};
const said = { turn, content: EVIL, reasoning_content: EVIL };
const RECORDS: readonly SessionRecord[] = [
  record({ kind: "user", turn, message_id: "m-1", content: EVIL, artifact: null }),
  record({
    kind: "assistant",
    ...said,
    tool_calls: [call],
    finish: "tool_calls",
    timings: timings(0, 100, 11),
  }),
  record({ kind: "label", class: "private", untrusted: true, why: EVIL }),
  record({
    kind: "tool_result",
    ...{ turn, call: call.call, tool: EVIL.slice(0, 100), content: EVIL.repeat(40), bytes: 1 },
    ...{ class: "private", untrusted: true, outcome: "denied", code: "no_grant", artifact: null },
    ...{ audit: { n: 7, hash: "a".repeat(64) }, container: null, image: null },
  }),
  record({
    kind: "assistant",
    ...{ ...said, tool_calls: [], finish: "stop" },
    timings: timings(60, 90, 5),
  }),
  record({ kind: "cache_loss", turn, expected: 110, reused: 60, guess: EVIL.slice(0, 150) }),
  record({ kind: "notice", turn, code: "x", text: EVIL }),
];

Deno.test("sessionPage() lets no text of the session become markup, and loads nothing", () => {
  const page = sessionPage(session, 0, RECORDS);
  assert(!/<script|<img|onerror=alert\(1\)>|javascript:/i.test(page.replace(/&lt;/g, "")));
  const tags = new Set([...page.matchAll(/<([a-z0-9!/]+)/gi)].map((match) => match[1]));
  for (const tag of ["script", "img", "a", "iframe", "link", "/title>"]) {
    assert(!tags.has(tag), tag);
  }
  assert(!page.includes("\u202e") && !page.includes("\x1b"));
  assert(!/<[^>]*\s(?:src|href|on\w+)=|url\(/.test(page), "it would load or run something");
  assert(page.includes("default-src 'none'"));
});

Deno.test("sessionPage() shows turns, cache, decisions, taint and notices", () => {
  const page = sessionPage(session, 0, RECORDS);
  strictEqual(page.match(/<rect class="reuse"/g)?.length, 2);
  strictEqual(page.match(/<line class="expected"/g)?.length, 1, "the first expects nothing");
  assert(page.includes("request 2: 60 reused, 90 read anew, expected 110"));
  assert(page.includes("denied: no_grant; private, untrusted; audit record 7"));
  assert(page.includes("from here on private, untrusted"));
  assert(page.includes("untrusted text entered"));
  assert(sessionPage(session, 0, []).includes("No request was measured"));
});

Deno.test("sessions export prints the page, and refuses a damaged log", async () => {
  await using rig = await ownerRig();
  let log = "";
  await rig.serve("owner-loop/admin", [on(SESSION_LOG, async (body, io) => {
    await io.chunk(encodeUtf8(log));
    return ok({ kind: "session_log_end", body: { session: body.session, epoch: 0 } });
  })]);
  const words = ["sessions", "export", session, "--html", "-"];
  const empty = await rig.run(words);
  strictEqual(empty.status, 0);
  assert(empty.out.startsWith("<!doctype html>"));
  log = "{\n";
  strictEqual((await rig.run(words)).status, 1);
  strictEqual((await rig.run(["sessions", "export", session])).status, 2);
});

Deno.test("status tells of a lost cache, which is no problem", async () => {
  await using rig = await ownerRig();
  const last = { time_unix_ms: 1, expected: 14, reused: 5, guess: `another client \x1b[2J` };
  let cache: { measured: number; losses: number; last: typeof last | null } = {
    ...{ measured: 9, losses: 1, last },
  };
  await rig.serve("owner-loop/admin", [on(LOOP_STATUS, () => {
    const none = { build: null, model: null, n_ctx: null, slots: null };
    const counts = { sessions: 1, turns_running: 0, turns_waiting: 0, outbox_pending: 0 };
    const told = { version: "0", started_unix_ms: 1, summary: "Idle", problems: [] };
    const model = { is_reachable: true, ...none };
    return ok({ kind: "loop_status", body: { ...told, ...counts, self_test: [], model, cache } });
  })]);
  const { out } = await rig.run(["status"]);
  assert(/1 of 9 requests .* 5 of 14 tokens reused \(another client/.test(out), out);
  assert(!out.includes("\x1b"));
  const json = JSON.parse((await rig.run(["status", "--json"])).out);
  deepStrictEqual(json.loopd.cache, cache);
  cache = { measured: 9, losses: 0, last: null };
  assert(!(await rig.run(["status"])).out.includes("tokens reused"));
});

Deno.test("cache prints a row a request with turn, counts and cause", async () => {
  await using rig = await ownerRig();
  const use = { turn, time_unix_ms: 1, reused: 5, read: 9, written: 1 };
  await rig.serve("owner-loop/admin", [on(CACHE_REPORT, (body) => {
    const items = [
      { ...use, expected: null, cause: "" },
      { ...use, expected: 14, cause: `lost \x1b[2J` },
    ];
    return ok({ kind: "cache_uses", body: { session: body.session ?? session, epoch: 0, items } });
  })]);
  const shown = await rig.run(["cache"]);
  const lines = shown.out.trimEnd().split("\n").slice(1).map((line) => line.trim().split(/ {2,}/));
  deepStrictEqual(lines[0], ["turn", "reused", "read anew", "expected", "cause"]);
  deepStrictEqual(lines[1], ["1", "5", "9", "-"]);
  assert(!shown.out.includes("\x1b") && shown.out.includes("lost"));
  const json = JSON.parse((await rig.run(["cache", session, "--json"])).out);
  deepStrictEqual(json.items.length, 2);
  strictEqual((await rig.run(["cache", "nonsense"])).status, 2);
});
