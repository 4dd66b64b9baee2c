// Guards: "stored text is escaped before it touches a terminal; every listing has --json with one
// error shape; colour only on a terminal; errors say what happened and what to do".
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { err, ok } from "../../shared/results/result.ts";
import { ApprovalId, CallId, SessionId } from "../../shared/ids/ids.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import {
  APPROVAL_ANSWER,
  APPROVAL_SHOW,
  APPROVALS_LIST,
  AUDIT_REPAIR,
  AUDIT_TAIL,
  AUDIT_VERIFY,
  GRANTS_CHECK,
  SECRET_SET,
} from "../../shared/wire/broker_owner.ts";
import { PROMPT_BILL, SESSIONS_LIST } from "../../shared/wire/loop.ts";
import { MEMORY_CHECK, MEMORY_STATUS, OWNER_RECALL } from "../../shared/wire/memory.ts";
import type { ApprovalSummary } from "../../shared/wire/parts.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import { writeFrame } from "../../shared/wire/frame.ts";
import { on } from "../../shared/wire/listen.ts";
import { fakeTerminal, ownerRig } from "../../tests/doubles/house/owner_rig.ts";
import { COMMANDS } from "./commands.ts";

const ULID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";
const EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u0000\r\nforged line";
const session = SessionId.parse(`chat-${ULID}`);
const hash = "a".repeat(64);

const summary: ApprovalSummary = {
  approval: ApprovalId.parse(`a-${ULID}`),
  session,
  call: CallId.parse(`c-${ULID}`),
  tool: "read_file",
  state: "pending",
  created_unix_ms: 0,
  expires_unix_ms: 4_000_000_000_000,
  approver: "any",
};

/** No byte that a terminal would obey. */
function isHarmless(text: string): boolean {
  return isPlainText(text.replaceAll("\n", ""));
}

Deno.test("recall, grants and audit escape hostile text before it touches the terminal", async () => {
  await using rig = await ownerRig();
  await rig.serve("owner-memory/admin", [on(OWNER_RECALL, () =>
    ok({
      kind: "recalled",
      body: {
        hits: [{
          tag: "memory-tainted",
          source: "session x",
          time_unix_ms: 0,
          who: EVIL.slice(0, 20),
          class: "private",
          untrusted: true,
          snippet: EVIL,
        }],
      },
    }))]);
  await rig.serve("owner-broker/admin", [
    on(GRANTS_CHECK, () =>
      ok({
        kind: "grants",
        body: {
          items: [{
            name: EVIL,
            is_built_in: false,
            sha256: null,
            tool: null,
            mode: null,
            max_taint: null,
            expires_unix_ms: null,
            problems: [EVIL],
          }],
        },
      })),
    on(AUDIT_TAIL, async ({ count }, io) => {
      const record = { v: 1, n: 0, prev: hash, time: "t", kind: "decision", why: EVIL };
      const more = count === 1 ? "" : `not json ${EVIL}\n`;
      await io.chunk(encodeUtf8(`${JSON.stringify(record)}\n${more}`));
      return ok({ kind: "audit_tail_end", body: { head: { n: 0, hash }, lines: 2 } });
    }),
  ]);
  for (
    const words of [["recall", "x"], ["grants", "list"], ["audit", "tail"], ["audit", "show", "0"]]
  ) {
    const ran = await rig.run(words);
    isTrue(isHarmless(ran.out) && isHarmless(ran.err), words.join(" "));
    match(ran.out, /u\{1b\}/);
    const json = await rig.run([...words, "--json"]);
    isTrue(isHarmless(json.out), `${words.join(" ")} --json`);
    JSON.parse(json.out);
  }
});

Deno.test("every command fails with one JSON shape, and with a sentence and advice as text", async () => {
  await using rig = await ownerRig();
  const words = [
    ["approvals"],
    ["approve", "x"],
    ["stop"],
    ["resume"],
    ["audit", "tail"],
    ["audit", "verify"],
    ["grants", "check"],
    ["recall", "x"],
    ["reindex"],
    ["sessions", "list"],
    ["prompt"],
  ];
  for (const command of words) {
    const ran = await rig.run([...command, "--json"]);
    strictEqual(ran.status, 1, command.join(" "));
    const { error } = JSON.parse(ran.out);
    strictEqual(error.code, "peer-down");
    isTrue(error.what.length > 0 && error.todo.length > 0 && error.detail.length > 0);
    const text = await rig.run(command);
    match(text.err, /^peer-down: /);
    strictEqual(text.out, "");
  }
});

Deno.test("a wrong word, option or number is a usage error with status 2", async () => {
  await using rig = await ownerRig();
  const wrong = [
    ["nonsense"],
    ["__proto__"],
    ["approvals", "--bad"],
    ["approve"],
    ["audit"],
    ["audit", "tail", "-n", "0"],
    ["audit", "show"],
    ["audit", "show", "-1"],
    ["audit", "verify", "--against", "1:zz"],
    ["grants", "explain", "../x"],
    ["sessions", "show", "../../etc"],
    ["chat", "--session", "chat-../x", "-m", "a"],
    ["chat", "--json"],
    ["recall"],
  ];
  for (const words of wrong) {
    strictEqual((await rig.run(words)).status, 2, words.join(" "));
  }
  strictEqual((await rig.run([])).status, 2);
  for (const name of Object.keys(COMMANDS)) {
    const help = await rig.run([name, "--help"]);
    strictEqual(help.status, 0);
    match(help.out, new RegExp(`usage: bxctl ${name}`));
  }
});

Deno.test("a word or option too many is a usage error of every command, and nothing is asked", async () => {
  await using rig = await ownerRig();
  const forms = [
    "status",
    "version",
    "doctor",
    "approvals",
    `approvals show a-${ULID}`,
    "approve x",
    "deny x",
    "resume",
    "audit tail",
    "audit show 1",
    "audit verify",
    "audit repair --yes",
    "grants check",
    "grants list",
    "grants explain read_file {}",
    "grants new read_file",
    "egress --reach x",
    "reindex",
    "memory log",
    "memory show 1",
    "memory undo memory",
    "memory review",
    `memory review c-${ULID} apply`,
    `memory purge --source ${session} --yes`,
    "memory status",
    "secrets set x",
    "sessions list",
    `sessions show ${session}`,
    `sessions verify ${session}`,
    `sessions export ${session} --html -`,
    "prompt",
    `cache ${session}`,
    "chat -m x",
  ];
  const flagOnly = ["stop why", "recall what"];
  const long = [
    ...forms.map((form) => `${form} more`),
    ...[...forms, ...flagOnly].map((form) => `${form} --bogus`),
  ];
  for (const line of long) {
    const ran = await rig.run([...line.split(" "), "--json"]);
    strictEqual(ran.status, 2, line);
    const { error } = JSON.parse(ran.out);
    strictEqual(error.code, "usage", line);
    strictEqual(error.detail.split("usage: bxctl").length, 2, error.detail);
  }
});

Deno.test("status names each role that is down and fails, also when one hangs", async () => {
  await using rig = await ownerRig();
  await Deno.mkdir(`${rig.home}/run/owner-loop`, { recursive: true });
  const silent = Deno.listen({ transport: "unix", path: `${rig.home}/run/owner-loop/admin.sock` });
  const ran = await rig.run(["status"]);
  silent.close();
  strictEqual(ran.status, 1);
  for (const role of ["gatewayd", "loopd", "inferproxy", "brokerd", "egressd", "memoryd"]) {
    match(ran.out, new RegExp(`^${role} +DOWN`, "m"));
  }
  const json = JSON.parse((await rig.run(["status", "--json"])).out);
  strictEqual(json.is_healthy, false);
  strictEqual(json.roles.length, 6);
});

Deno.test("status is not held up by a role that only says it is busy", async () => {
  await using rig = await ownerRig();
  await Deno.mkdir(`${rig.home}/run/owner-loop`, { recursive: true });
  const listener = Deno.listen({
    transport: "unix",
    path: `${rig.home}/run/owner-loop/admin.sock`,
  });
  const busy = (async () => {
    const conn = await listener.accept();
    for (let sent = 0; sent < 200; sent++) {
      const frame = { v: 1, kind: "keepalive", body: {} };
      if (!(await writeFrame(conn, frame, 1_000)).ok) {
        conn.close();
        return "left";
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    conn.close();
    return "stayed";
  })();
  const ran = await rig.run(["status"]);
  match(ran.out, /^loopd +DOWN/m);
  strictEqual(await busy, "left");
  listener.close();
});

Deno.test("colour goes to a terminal that wants it and nowhere else", async () => {
  await using rig = await ownerRig();
  const plain = await rig.run(["approvals"]);
  const coloured = await rig.run(["approvals"], fakeTerminal(true, true));
  isTrue(!plain.err.includes("\x1b["));
  isTrue(coloured.err.includes("\x1b[31m"));
});

Deno.test("approvals are listed, shown in full, and answered with their outcome", async () => {
  await using rig = await ownerRig();
  const answers: string[] = [];
  await rig.serve("owner-broker/admin", [
    on(APPROVALS_LIST, () => ok({ kind: "approvals", body: { items: [summary] } })),
    on(APPROVAL_SHOW, async (_body, io) => {
      await io.chunk(encodeUtf8("read_file\npath \\u{202e}x\\\\y\ncode k7m2"));
      return ok({ kind: "approval", body: { summary, code: "k7m2" } });
    }),
    on(APPROVAL_ANSWER, (body) => {
      answers.push(`${body.answer} ${body.code}`);
      const outcome = body.code === "k7m2" ? "approved" : "unknown";
      return ok({
        kind: "approval_answered",
        body: { outcome, approval: null, tool: null },
      });
    }),
  ]);
  match((await rig.run(["approvals"])).out, /a-01J.*read_file/);
  const shown = await rig.run(["approvals", "show", summary.approval]);
  // The rendering is escaped by its maker; escaping it again would show the owner other bytes.
  strictEqual(shown.out, "read_file\npath \\u{202e}x\\\\y\ncode k7m2\n");
  strictEqual((await rig.run(["approve", "k7m2"])).status, 0);
  strictEqual((await rig.run(["approve", "zzzz"])).status, 1);
  strictEqual((await rig.run(["deny", "k7m2"])).status, 1);
  strictEqual(answers.join(), "approve k7m2,approve zzzz,deny k7m2");
});

Deno.test("audit verify fails with a log that is not whole, and shows its progress", async () => {
  await using rig = await ownerRig();
  const verified = (is_whole: boolean) => ({
    is_whole,
    records: 3,
    files: 1,
    head: { n: 2, hash },
    finding: is_whole ? "nothing to report" : "record 2 was changed",
  });
  for (const isWhole of [true, false]) {
    await rig.serve("owner-broker/admin", [on(AUDIT_VERIFY, async (_body, io) => {
      const body = { records: 1, bytes: 50, total_bytes: 100 };
      await io.event({ kind: "verify_progress", body });
      return ok({ kind: "audit_verified", body: verified(isWhole) });
    })]);
    const ran = await rig.run(["audit", "verify"], fakeTerminal(true));
    strictEqual(ran.status, isWhole ? 0 : 1);
    match(ran.err, /verifying: 50 %/);
    match(ran.out, isWhole ? /^whole: 3 records/ : /^NOT WHOLE: 3 records/);
  }
});

Deno.test("audit repair declares nothing that was not shown and confirmed", async () => {
  await using rig = await ownerRig();
  const declared: (string | null)[] = [];
  let now = "2026-11.jsonl, record 3: edit \u001b[2J";
  await rig.serve("owner-broker/admin", [
    on(AUDIT_REPAIR, ({ finding }) => {
      declared.push(finding);
      const is_done = finding === now;
      const head = is_done ? { n: 9, hash: "a".repeat(64) } : null;
      return ok({ kind: "audit_repaired", body: { is_done, finding: now, head } });
    }),
  ]);
  const piped = await rig.run(["audit", "repair"]);
  strictEqual(piped.status, 2);
  match(piped.err, /record 3: edit \\u\{1b\}\[2J/);
  for (const word of ["", "y", "no", null]) {
    const terminal = fakeTerminal(true);
    terminal.type(word);
    strictEqual((await rig.run(["audit", "repair"], terminal)).status, 2);
  }
  isTrue(declared.every((finding) => finding === null), "something was declared");
  const terminal = fakeTerminal(true);
  const asking = rig.run(["audit", "repair"], terminal);
  while (!terminal.printed.err.includes("Type yes")) await new Promise((r) => setTimeout(r, 5));
  const shown = now;
  now = "another finding";
  terminal.type("yes");
  strictEqual((await asking).status, 1);
  deepStrictEqual(declared.at(-1), shown, "another finding than the one shown was declared");
  const done = await rig.run(["audit", "repair", "--yes"]);
  strictEqual(done.status, 0, done.err);
  match(done.out, /goes on at record 9/);
});

Deno.test("prompt prints its bill, sessions list an empty past, and refusals keep their code", async () => {
  await using rig = await ownerRig();
  await rig.serve("owner-loop/admin", [
    on(PROMPT_BILL, () =>
      ok({
        kind: "prompt_bill",
        body: {
          lines: [{ part: "system.md", tokens: 120 }, { part: "tools", tokens: 300 }],
          total: 420,
          budget: 3_000,
          counted_by: "server",
        },
      })),
    on(
      SESSIONS_LIST,
      (body) =>
        body.limit === 7
          ? err("not-found", "No such page")
          : ok({ kind: "sessions", body: { items: [] } }),
    ),
  ]);
  match((await rig.run(["prompt"])).out, /420 {2}in all, of 3000 allowed \(counted by/);
  match((await rig.run(["sessions", "list"])).out, /No session yet/);
  strictEqual(JSON.parse((await rig.run(["sessions", "list", "--json"])).out).sessions.length, 0);
  match((await rig.run(["sessions", "list", "-n", "7"])).err, /^not-found: .*\n {2}No such page\n/);
});

Deno.test("secrets set hands over what was typed and prints nothing of it", async () => {
  await using rig = await ownerRig();
  const got: string[] = [];
  await rig.serve("owner-broker/admin", [on(SECRET_SET, ({ name }, io) => {
    got.push(`${name}=${new TextDecoder().decode(io.upload)}`);
    return got.length === 1
      ? ok({ kind: "secret_kept", body: { was_there: false } })
      : err("secret-missing", "Write it into brokerd.toml");
  })]);
  for (const [isInteractive, status] of [[true, 0], [false, 1]] as const) {
    const terminal = fakeTerminal(isInteractive);
    terminal.type("canary");
    const ran = await rig.run(["secrets", "set", "key"], terminal);
    strictEqual(ran.status, status);
    isTrue(!`${ran.out}${ran.err}`.includes("canary"));
  }
  strictEqual(got.join(), "key=canary,key=canary");
  for (const args of [["secrets"], ["secrets", "set"], ["secrets", "set", "key", "canary"]]) {
    strictEqual((await rig.run(args)).status, 2);
  }
  strictEqual(got.length, 2);
});

Deno.test("doctor names every role that is down and every finding, with what to do, and fails", async () => {
  await using rig = await ownerRig();
  const problems = [{ code: "log-broken", detail: EVIL }];
  await rig.serve("owner-memory/admin", [
    on(MEMORY_STATUS, () =>
      ok({
        kind: "memory_status",
        body: {
          ...{ version: "1", started_unix_ms: 0, summary: "", problems, files: [] },
          ...{ indexed_records: 0, indexed_logs: 0 },
        },
      })),
    on(MEMORY_CHECK, () =>
      ok({
        kind: "memory_checked",
        body: { findings: [...problems, { code: "of-the-future", detail: "x" }] },
      })),
  ]);
  const ran = await rig.run(["doctor"]);
  strictEqual(ran.status, 1);
  isTrue(isHarmless(ran.out));
  for (const role of ["gatewayd", "loopd", "brokerd"]) {
    match(ran.out, new RegExp(`\\(${role}\\): `));
  }
  strictEqual(ran.out.match(/log-broken \(memoryd\)/g)?.length, 1);
  match(ran.out, /Do not edit or delete it/);
  match(ran.out, /of-the-future .*\n {2}x\n {2}Look for of-the-future in docs\/runbook\.md/);
  const { is_healthy, findings } = JSON.parse((await rig.run(["doctor", "--json"])).out);
  strictEqual(is_healthy, false);
  isTrue(findings.every((one: Record<string, unknown>) => typeof one.todo === "string"));
});
