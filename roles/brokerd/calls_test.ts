// Guards the one path from a request to an effect: nothing runs without a decision, nothing twice,
// nothing after a stop, and the outcome of a call outlives the one who ran it.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { DiskError } from "../../shared/disk/disk.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { err, ok as good } from "../../shared/results/result.ts";
import { settled } from "../../tests/doubles/manual_clock.ts";
import {
  grantToml,
  heldScript,
  type HouseOptions,
  newCall,
  newSession,
  newTurn,
  openChat,
  outcomeOf,
  ROOT,
  type TestHouse,
  testHouse,
  withHouse,
} from "../../tests/doubles/broker_house.ts";
import type { House } from "./house.ts";

const PATH = JSON.stringify({ path: `${ROOT}/a.txt` });
const AUTO: HouseOptions = { grants: { "read.toml": grantToml("read_file", "auto") } };

/** Asks for one call and lets everything that is ready happen. */
async function ask(house: House, tool: string, args: string, ids = {
  session: openChat(house),
  turn: newTurn(),
  call: newCall(),
}) {
  const answer = house.calls.request({ ...ids, tool, args });
  await settled();
  return { ...ids, answer, now: () => house.calls.fetch(ids.session, ids.call) };
}

function ended(answer: ReturnType<House["calls"]["fetch"]>) {
  ok(answer.ok, JSON.stringify(answer));
  ok(answer.value.is === "ended", JSON.stringify(answer.value));
  return answer.value.result;
}

function kinds(house: House): string[] {
  return [...house.audit.records()].map((record) => record.kind);
}

function textOf(house: House, answer: ReturnType<House["calls"]["fetch"]>): string {
  return [...house.results.output(ended(answer))].map((one) => new TextDecoder().decode(one)).join(
    "",
  );
}

Deno.test("request() a session that was never opened may call nothing, and leaves no file", () =>
  withHouse(AUTO, async (house, test) => {
    const ids = { session: newSession(), turn: newTurn(), call: newCall() };
    for (const tool of ["read_file", "clock", "recall", "no_such_tool"]) {
      const { answer } = await ask(house, tool, PATH, ids);
      const result = ended(answer);
      deepStrictEqual([result.outcome, result.code], ["denied", "unknown_session"]);
    }
    deepStrictEqual(test.fake.runs, []);
    strictEqual(
      house.results.load(ids.call).ok && house.calls.fetch(ids.session, ids.call).ok,
      false,
    );
    strictEqual(kinds(house).filter((kind) => kind === "decision").length, 4);
  }));

Deno.test("request() without a grant, or beside it, is denied by name and nothing starts", () =>
  withHouse({ ...AUTO, files: { "a.txt": "x" } }, async (house, test) => {
    const cases: [string, string, string][] = [
      ["list_dir", JSON.stringify({ path: ROOT }), "no_grant"],
      ["read_file", JSON.stringify({ path: "/srv/other/x" }), "path_outside"],
      ["read_file", JSON.stringify({ path: "/etc/passwd" }), "path_outside"],
      ["read_file", JSON.stringify({ path: "/home/bx/audit/head.json" }), "path_outside"],
      ["read_file", JSON.stringify({ path: `${ROOT}/../other/x` }), "arguments_invalid"],
      ["read_file", JSON.stringify({ path: "a.txt" }), "arguments_invalid"],
      ["read_file", JSON.stringify({ path: `${ROOT}/a.txt`, as: "root" }), "arguments_invalid"],
      ["read_file", "{", "arguments_invalid"],
      ["read_file", "[]", "arguments_invalid"],
      ["read_file", `{"path":"${ROOT}/a.txt","path":"/etc/passwd"}`, "path_outside"],
      ["rm_rf", "{}", "unknown_tool"],
    ];
    for (const [tool, args, code] of cases) {
      const { answer } = await ask(house, tool, args);
      strictEqual(ended(answer).code, code, `${tool} ${args}`);
    }
    deepStrictEqual(test.fake.runs, []);
    ok(!kinds(house).includes("start"));
  }));

Deno.test("request() an allowed call runs once in a container with exactly its plan", () =>
  withHouse(AUTO, async (house, test) => {
    const one = await ask(house, "read_file", PATH);
    const result = ended(one.now());
    deepStrictEqual([result.outcome, result.code, result.label], [
      "done",
      null,
      { class: "private", untrusted: false },
    ]);
    strictEqual(textOf(house, one.now()), 'ran {"path":"/grant/0"}');
    const [plan] = test.fake.runs;
    deepStrictEqual(plan?.mounts, [{ hostPath: `${ROOT}/a.txt`, write: false }]);
    deepStrictEqual(plan?.flags, ["--allow-read=/grant/0"]);
    deepStrictEqual([plan?.map, plan?.egressFolder, plan?.secretsJson], ["owner", null, null]);
    deepStrictEqual(kinds(house), ["grants", "session", "decision", "start", "result"]);
  }));

Deno.test("request() the same call asked again is joined, then answered, and never runs again", () =>
  withHouse(AUTO, async (house, test) => {
    const held = heldScript();
    test.fake.script = held.script;
    const one = await ask(house, "read_file", PATH);
    const again = await ask(house, "read_file", PATH, one);
    ok(again.answer.ok && again.answer.value.is === "pending");
    held.release();
    await settled();
    const third = await ask(house, "read_file", '{"path":"/etc/passwd"}', one);
    strictEqual(ended(third.answer).outcome, "done");
    strictEqual(test.fake.runs.length, 1);
    const other = house.calls.request({
      session: openChat(house),
      turn: one.turn,
      call: one.call,
      tool: "read_file",
      args: PATH,
    });
    ok(!other.ok && other.code === "request-invalid", "another session took the result");
    ok(house.calls.acknowledge(one.session, one.call).ok);
    await ask(house, "read_file", PATH, one);
    strictEqual(test.fake.runs.length, 1);
  }));

Deno.test("request() calls beyond the limit wait in order, and a queued one is judged anew", () =>
  withHouse({ ...AUTO, config: { runtime: { concurrent: 1 } } }, async (house, test) => {
    const held = heldScript();
    test.fake.script = held.script;
    const first = await ask(house, "read_file", PATH);
    const second = await ask(house, "read_file", PATH);
    const third = await ask(house, "read_file", PATH);
    ok(second.answer.ok && second.answer.value.is === "pending");
    strictEqual(test.fake.runs.length, 1);
    test.grant("read.toml", null);
    held.release();
    await settled();
    strictEqual(ended(first.now()).outcome, "done");
    strictEqual(ended(second.now()).code, "no_grant");
    strictEqual(ended(third.now()).code, "no_grant");
    strictEqual(test.fake.runs.length, 1);
  }));

Deno.test("request() a call that would open what a running one may write waits for it", () =>
  withHouse({
    grants: {
      "read.toml": grantToml("read_file", "auto"),
      "write.toml": grantToml("write_file", "auto", "write = true\n"),
    },
  }, async (house, test) => {
    const held = heldScript();
    test.fake.script = held.script;
    const write = await ask(
      house,
      "write_file",
      JSON.stringify({ path: `${ROOT}/new.txt`, content: "x" }),
    );
    const read = await ask(house, "read_file", PATH);
    strictEqual(test.fake.runs.length, 1);
    deepStrictEqual(test.fake.runs[0]?.mounts, [{ hostPath: ROOT, write: true }]);
    match(test.fake.runs[0]?.argsJson ?? "", /"path":"\/grant\/0\/new\.txt"/);
    held.release();
    await settled();
    strictEqual(ended(write.now()).outcome, "done");
    strictEqual(ended(read.now()).outcome, "done");
    strictEqual(test.fake.runs.length, 2);
  }));

Deno.test("request() a result's label is the stricter of grant and runtime, and the session's from then on", () =>
  withHouse({
    grants: {
      "read.toml": grantToml("read_file", "auto").replace("untrusted = false", "untrusted = true"),
    },
  }, async (house) => {
    const one = await ask(house, "read_file", PATH);
    deepStrictEqual(ended(one.now()).label, { class: "private", untrusted: true });
    deepStrictEqual(house.sessions.find(one.session)?.label, { class: "private", untrusted: true });
    const next = await ask(house, "read_file", PATH, { ...one, call: newCall() });
    ok(next.answer.ok && next.answer.value.is === "pending");
    strictEqual(next.answer.value.pending.state, "waiting_approval");
  }));

Deno.test("request() memory's own label taints: a secret hit makes the session secret", () =>
  withHouse({}, async (house, test) => {
    test.memoryReply = () => good({ text: "x", label: { class: "secret", untrusted: true } });
    const one = await ask(house, "recall", '{"query":"plans"}');
    deepStrictEqual(ended(one.now()).label, { class: "secret", untrusted: true });
    deepStrictEqual(house.sessions.find(one.session)?.label, { class: "secret", untrusted: true });
  }));

Deno.test("request() identity edits ask when the owner wants it, notes never", () =>
  withHouse({ config: { memory: { identity_writes: "ask" } } }, async (house) => {
    const note = await ask(house, "memory", '{"action":"note","text":"rain"}');
    strictEqual(ended(note.now()).outcome, "done");
    const add = await ask(house, "memory", '{"action":"add","file":"user","text":"likes rain"}');
    ok(add.answer.ok && add.answer.value.is === "pending");
    strictEqual(add.answer.value.pending.state, "waiting_approval");
  }));

Deno.test("request() a memory write whose answer was lost is unknown, one that never left failed", () =>
  withHouse({}, async (house, test) => {
    const args = '{"action":"note","text":"rain"}';
    test.memoryReply = () => err("frame-closed", "gone in the middle");
    strictEqual(ended((await ask(house, "memory", args)).now()).outcome, "unknown");
    test.memoryReply = () => err("peer-down", "nobody there");
    const down = ended((await ask(house, "memory", args)).now());
    deepStrictEqual([down.outcome, down.code], ["failed", "peer-down"]);
  }));

Deno.test("request() clock and find_tool answer here, read_result is the caller's own to run", () =>
  withHouse({}, async (house) => {
    const clock = await ask(house, "clock", '{"timezone":"Europe/Berlin"}');
    match(textOf(house, clock.now()), /2026-11-30T08:00:00\.000Z.*09:00:00/);
    const found = await ask(house, "find_tool", '{"query":"read a file"}');
    match(textOf(house, found.now()), /^\{"name":"read_file"/);
    const local = await ask(house, "read_result", `{"result":"${"a".repeat(64)}","offset":0}`);
    ok(local.answer.ok);
    strictEqual(local.answer.value.is, "run_local");
  }));

Deno.test("halt() refuses at once, ends what runs, waits or asks, and stays over a restart", async () => {
  const test = testHouse({
    grants: {
      "read.toml": grantToml("read_file", "auto"),
      "list.toml": grantToml("list_dir", "ask"),
    },
    config: { runtime: { concurrent: 1 } },
  });
  const house = test.open();
  test.fake.script = heldScript().script;
  const running = await ask(house, "read_file", PATH);
  const queued = await ask(house, "read_file", PATH);
  const asking = await ask(house, "list_dir", JSON.stringify({ path: ROOT }));
  const code = test.posted[0]?.code ?? "";
  const ends = house.halt("owner", "enough", null);
  ok(ends.ok && ends.value === 3);
  const late = await ask(house, "clock", "{}");
  strictEqual(ended(late.answer).code, "stopped");
  for (const one of [running, queued, asking]) strictEqual(ended(one.now()).code, "stopped");
  strictEqual(test.fake.runs.length, 1);
  const answered = house.approvals.answer(code, "approve", "owner", null);
  ok(answered.ok && answered.value.outcome === "already_answered");
  await house.close();

  const next = test.open();
  strictEqual(ended((await ask(next, "clock", "{}")).answer).code, "stopped");
  ok(next.resume().ok);
  strictEqual(ended((await ask(next, "clock", "{}")).now()).outcome, "done");
  strictEqual(test.fake.runs.length, 1);
  await next.close();
});

Deno.test("cancel() ends a running call, closes a question, and leaves an ended call as it is", () =>
  withHouse({
    grants: {
      "read.toml": grantToml("read_file", "auto"),
      "list.toml": grantToml("list_dir", "ask"),
    },
  }, async (house, test) => {
    const done = await ask(house, "clock", "{}");
    ok(house.calls.cancel(done.session, done.call).ok);
    strictEqual(ended(done.now()).outcome, "done");
    test.fake.script = heldScript().script;
    const running = await ask(house, "read_file", PATH);
    const asking = await ask(house, "list_dir", JSON.stringify({ path: ROOT }));
    ok(!house.calls.cancel(done.session, running.call).ok, "another session cancelled it");
    ok(house.calls.cancel(running.session, running.call).ok);
    ok(house.calls.cancel(asking.session, asking.call).ok);
    await settled();
    for (const one of [running, asking]) strictEqual(ended(one.now()).code, "withdrawn");
    strictEqual(house.approvals.list("all")[0]?.state, "withdrawn");
  }));

Deno.test("request() a tool's failure, time limit and cap have codes of their own", () =>
  withHouse(AUTO, async (house, test) => {
    const cases = [
      ["tool_failed", "tool-failed"],
      ["timeout", "tool-timeout"],
      ["output_capped", "output-capped"],
      ["killed", "withdrawn"],
    ] as const;
    for (const [status, code] of cases) {
      test.fake.script = (plan, io) => {
        io.onOutput(encodeUtf8("part"));
        return Promise.resolve(good(outcomeOf(plan, { status, message: "why" })));
      };
      const one = await ask(house, "read_file", PATH);
      const result = ended(one.now());
      deepStrictEqual([result.outcome, result.code, result.bytes], ["failed", code, 4]);
      strictEqual(result.is_cut, status === "output_capped");
    }
    test.fake.script = () => Promise.resolve(err("runtime-unavailable", "no podman"));
    const one = await ask(house, "read_file", PATH);
    strictEqual(ended(one.now()).code, "runtime-unavailable");
  }));

Deno.test("request() a granted file that is not there is said so, one outside is not", () =>
  withHouse(AUTO, async (house) => {
    const inside = await ask(house, "read_file", JSON.stringify({ path: `${ROOT}/none.txt` }));
    deepStrictEqual([ended(inside.answer).outcome, ended(inside.answer).code], [
      "failed",
      "path-unusable",
    ]);
    const outside = await ask(house, "read_file", '{"path":"/srv/other/none.txt"}');
    strictEqual(ended(outside.answer).code, "path_outside");
  }));

Deno.test("request() limits of a turn and of a day hold over a restart", async () => {
  const test = testHouse({
    grants: {
      "read.toml": grantToml(
        "read_file",
        "auto",
        "[limits]\ncalls_per_turn = 2\ncalls_per_day = 3\n",
      ),
    },
  });
  const house = test.open();
  const one = await ask(house, "read_file", PATH);
  await ask(house, "read_file", PATH, { ...one, call: newCall() });
  const third = await ask(house, "read_file", PATH, { ...one, call: newCall() });
  strictEqual(ended(third.answer).code, "limit_reached");
  await ask(house, "read_file", PATH, { ...one, turn: newTurn(), call: newCall() });
  await house.close();
  const next = test.open();
  const later = await ask(next, "read_file", PATH);
  strictEqual(ended(later.answer).code, "limit_reached");
  test.clock.setWall(test.clock.nowUnixMs() + 86_400_000);
  const tomorrow = await ask(next, "read_file", PATH);
  strictEqual(ended(tomorrow.now()).outcome, "done");
  await next.close();
});

Deno.test("request() a day's limit holds over a restart on the day on which the log's file changes", async () => {
  const limits = "[limits]\ncalls_per_day = 3\n";
  const test = testHouse({ grants: { "read.toml": grantToml("read_file", "auto", limits) } });
  const house = test.open();
  test.clock.setWall(Date.UTC(2026, 11, 1, 8));
  for (let i = 0; i < 3; i++) {
    const call = await ask(house, "read_file", PATH);
    strictEqual(ended(call.now()).outcome, "done");
  }
  await house.close();
  const next = test.open();
  strictEqual(ended((await ask(next, "read_file", PATH)).answer).code, "limit_reached");
  await next.close();
});

Deno.test("checkWitness() a head that the log does not hold stops everything until the owner resumes", () =>
  withHouse(AUTO, async (house, test) => {
    ok(house.checkWitness(null).ok);
    ok(house.checkWitness(house.audit.head()).ok);
    const first = { n: 0, hash: house.audit.head().hash };
    for (const witness of [first, { n: 999, hash: "f".repeat(64) }]) {
      const seen = house.checkWitness(witness);
      ok(!seen.ok && seen.code === "audit-broken");
      ok(house.stop.isStopped());
      strictEqual(ended((await ask(house, "clock", "{}")).answer).code, "stopped");
      ok(house.resume().ok);
      ok(house.checkWitness(witness).ok, "the owner's resume accepts what was shown");
    }
    await settled();
    strictEqual(test.notices.length, 2);
  }));

Deno.test("fetch() a call that was never asked for is a failure, not a denial", () =>
  withHouse(AUTO, (house) => {
    const answer = house.calls.fetch(newSession(), newCall());
    ok(!answer.ok && answer.code === "not-found");
    return Promise.resolve();
  }));

Deno.test("request() a clock that is far ahead for some starts forgets no call and no outcome", async () => {
  const test = testHouse(AUTO);
  const house = test.open();
  const one = await ask(house, "read_file", PATH);
  const acked = await ask(house, "read_file", PATH);
  ok(house.calls.acknowledge(acked.session, acked.call).ok);
  await house.close();
  const now = test.clock.nowUnixMs();
  for (const days of [400, 401, 0]) {
    test.clock.setWall(now + days * 86_400_000);
    const next = test.open();
    strictEqual(textOf(next, next.calls.fetch(one.session, one.call)), 'ran {"path":"/grant/0"}');
    await ask(next, "read_file", PATH, acked);
    strictEqual(test.fake.runs.length, 2, `${days} days ahead a call ran again`);
    await next.close();
  }
});

Deno.test("request() a day's limit holds over a clock that jumps ahead and back", async () => {
  const limits = "[limits]\ncalls_per_day = 1\n";
  const test = testHouse({ grants: { "read.toml": grantToml("read_file", "auto", limits) } });
  const house = test.open();
  const now = test.clock.nowUnixMs();
  for (const [days, outcome] of [[0, "done"], [0, "denied"], [1, "done"], [0, "denied"]] as const) {
    test.clock.setWall(now + days * 86_400_000);
    strictEqual(ended((await ask(house, "read_file", PATH)).now()).outcome, outcome);
  }
  await house.close();
});

Deno.test("request() a call that was forgotten months later is still no new one", async () => {
  const test = testHouse(AUTO);
  const house = test.open();
  const one = await ask(house, "read_file", PATH);
  house.calls.acknowledge(one.session, one.call);
  await house.close();
  for (const month of [0, 1, 2]) {
    test.clock.setWall(Date.UTC(2027, month, 30));
    const next = test.open();
    const again = next.calls.request({ ...one, tool: "read_file", args: PATH });
    ok(again.ok === (month < 2), `month ${month}: ${JSON.stringify(again)}`);
    strictEqual(test.disk.list("/home/bx/broker/results").length, month < 2 ? 1 : 0);
    await next.close();
  }
  strictEqual(test.fake.runs.length, 1);
});

Deno.test("request() a granted secret reaches the tool's input and nothing that is kept", async () => {
  const secret = 'secret = { name = "key", as = "stdin" }\n';
  const test = testHouse({
    grants: {
      "read.toml": grantToml("read_file", "auto", secret),
      "list.toml": grantToml("list_dir", "ask", secret),
    },
  });
  const house = test.open();
  await ask(house, "read_file", PATH);
  const asking = await ask(house, "list_dir", JSON.stringify({ path: ROOT }));
  const approval = house.approvals.list("pending")[0];
  ok(approval !== undefined);
  match(house.render(approval).join("\n"), /Secret: key as stdin/);
  house.approvals.answer(approval.code, "approve", "owner", null);
  await settled();
  strictEqual(ended(asking.now()).outcome, "done");
  deepStrictEqual(test.fake.runs.map((run) => run.secretsJson), Array(2).fill('{"key":"canary"}'));
  const kept = [...filesBelow(test, "/home/bx"), ...test.logged, house.render(approval).join("\n")];
  ok(kept.length > 8);
  for (const text of kept) ok(!text.includes("canary"), text.slice(0, 200));
  await house.close();
});

function filesBelow(test: TestHouse, folder: string): string[] {
  return test.disk.list(folder).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.kind === "folder") return filesBelow(test, path);
    const file = test.disk.open(path, "read");
    const bytes = new Uint8Array(file.stat().size);
    file.read(bytes);
    file.close();
    return [new TextDecoder().decode(bytes)];
  });
}

Deno.test("answer() one that a full disk could not record is none, and can be given once there is room", () =>
  withHouse({ grants: { "list.toml": grantToml("list_dir", "ask") } }, async (house, test) => {
    const yes = await ask(house, "list_dir", JSON.stringify({ path: ROOT }));
    const no = await ask(house, "list_dir", JSON.stringify({ path: ROOT }));
    const askedFor = (call: string) =>
      house.approvals.list("pending").find((one) => one.plan.call === call)?.code ?? "none";
    const codes = [askedFor(yes.call), askedFor(no.call)] as const;
    const open = test.disk.open;
    test.disk.open = (path, mode) => {
      if (path.includes("/audit/head")) throw new DiskError("no_space", "Injected: full");
      return open(path, mode);
    };
    ok(!house.approvals.answer(codes[0], "approve", "owner", null).ok);
    ok(!house.approvals.answer(codes[1], "deny", "owner", null).ok);
    deepStrictEqual(test.fake.runs, [], "an effect began without a record of it");
    test.disk.open = open;
    for (let i = 0; i < 4; i++) await test.clock.advance(2_000);
    deepStrictEqual(test.fake.runs, [], "an effect began that the owner was told of as failed");
    ok(house.approvals.answer(codes[0], "approve", "owner", null).ok);
    ok(house.approvals.answer(codes[1], "deny", "owner", null).ok);
    await settled();
    strictEqual(ended(yes.now()).outcome, "done");
    strictEqual(ended(no.now()).code, "denied_by_owner");
    strictEqual(test.fake.runs.length, 1);
  }));
