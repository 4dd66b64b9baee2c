// Guards brokerd against a caller that has turned: calls withdrawn, folded, flooded and stopped at odd
// moments, on a disk that is full in between. Nothing runs that should not, and every call ends.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { err } from "../../shared/results/result.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { AUDIT_REPAIR } from "../../shared/wire/broker_owner.ts";
import { call } from "../../shared/wire/dial.ts";
import { listen } from "../../shared/wire/listen.ts";
import { auditRoutes } from "./audit_requests.ts";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { approve, ASK, asks, busy, full, PATH, stateOf } from "../../tests/doubles/broker_calls.ts";
import {
  DiskDied,
  grantToml,
  HOME,
  newCall,
  newTurn,
  openChat,
  ROOT,
  type TestHouse,
  testHouse,
  withHouse,
} from "../../tests/doubles/broker_house.ts";
import { repairClosed } from "./audit.ts";
import { openHouse } from "./house.ts";

function bytesOf(test: TestHouse, path: string): Uint8Array {
  const file = test.disk.open(path, "read");
  const bytes = new Uint8Array(file.stat().size);
  file.read(bytes);
  file.close();
  return bytes;
}

Deno.test("cancel() an approved call that waits for room ends at once and never starts", () =>
  withHouse(ASK, async (house, test) => {
    const held = await busy(house, test);
    const one = await asks(house);
    const folded = await asks(house, one.session);
    await approve(house, test.posted[0]?.code);
    strictEqual(stateOf(house, one), "queued");
    ok(house.calls.cancel(one.session, one.call).ok);
    strictEqual(stateOf(house, one), "withdrawn");
    strictEqual(stateOf(house, folded), "withdrawn");
    held.release();
    await settled();
    strictEqual(test.fake.runs.length, 1);
    ok(house.calls.isIdle());
  }));

Deno.test("cancel() a question that is withdrawn on a full disk is closed once there is room", () =>
  withHouse(ASK, async (house, test) => {
    const one = await asks(house);
    const room = full(test, "/results/");
    ok(!house.calls.cancel(one.session, one.call).ok);
    room();
    await test.clock.advance(4_000);
    strictEqual(stateOf(house, one), "withdrawn");
    strictEqual(house.approvals.list("pending").length, 0);
    deepStrictEqual(test.fake.runs, []);
  }));

Deno.test("restore() a question whose call a crash had ended is not asked again", async () => {
  const test = testHouse(ASK);
  const house = test.open();
  const one = await asks(house);
  const room = full(test, "/audit/head");
  house.calls.cancel(one.session, one.call);
  room();
  strictEqual(stateOf(house, one), "withdrawn");
  const next = testHouse(ASK, test.disk.afterKill());
  const after = next.open();
  await settled();
  strictEqual(after.approvals.list("pending").length, 0);
  deepStrictEqual(next.posted, []);
  await after.close();
});

Deno.test("withdraw() the log says whether the caller or a stop closed a question", () =>
  withHouse(ASK, async (house) => {
    const one = await asks(house);
    house.calls.cancel(one.session, one.call);
    await asks(house);
    house.halt("owner", "enough", null);
    const ends = [...house.audit.records()].flatMap((said) =>
      said.kind === "approval" && said.event === "withdrawn" ? said.via : []
    );
    deepStrictEqual(ends, ["caller", "broker"]);
  }));

Deno.test("halt() what waited at a stop on a full disk does not start after the resume", () =>
  withHouse(ASK, async (house, test) => {
    const held = await busy(house, test);
    const one = await asks(house, openChat(house), "list_dir", JSON.stringify({ path: ROOT }));
    strictEqual(stateOf(house, one), "queued");
    const room = full(test, "/results/");
    house.halt("owner", "enough", null);
    ok(house.resume().ok);
    held.release();
    room();
    await settled();
    for (let i = 0; i < 3; i++) await test.clock.advance(2_000);
    strictEqual(test.fake.runs.length, 1, "a call that the stop had ended was started");
    ok(house.calls.isIdle());
  }));

Deno.test("ask() a full disk at any call leaves no question that nobody sees or that never ends", async () => {
  let refused = 0;
  for (let failAt = 1, met = true; met; failAt++) {
    const test = testHouse(ASK);
    const house = test.open();
    const session = openChat(house);
    const ids = { session, turn: newTurn(), call: newCall(), tool: "read_file", args: PATH };
    const before = test.disk.calls();
    test.disk.setFault({ failAt, kind: "no_space", lasting: "once", seed: 1 });
    try {
      if (!house.calls.request(ids).ok) refused++;
      await settled();
    } catch (thrown) {
      // A failed sync ends the process.
      ok(thrown instanceof DiskDied);
      await house.close();
      continue;
    }
    met = test.disk.calls() - before >= failAt;
    test.disk.setFault(null);
    const other = await asks(house, session);
    ok(house.calls.request(ids).ok);
    await settled();
    strictEqual(test.posted.length, 1, `${failAt}: the owner was not shown the question`);
    await approve(house, test.posted[0]?.code);
    strictEqual(stateOf(house, other), "done", `at call ${failAt}`);
    ok(house.calls.isIdle(), `${failAt}: a call never ends`);
    strictEqual(test.fake.runs.length, 1);
    await house.close();
  }
  ok(refused > 5, `${refused} faults were met`);
});

Deno.test("onClosed() calls that share a question that is folded into another one end with it", () =>
  withHouse(ASK, async (house, test) => {
    const session = openChat(house);
    const first = await asks(house, session);
    const shares = await asks(house, session);
    test.grant("read.toml", grantToml("read_file", "ask", "# anew\n"));
    const newer = await asks(house, session);
    await approve(house, test.posted[0]?.code);
    strictEqual(stateOf(house, first), "waiting_approval");
    await approve(house, test.posted[1]?.code);
    strictEqual(test.fake.runs.length, 1);
    deepStrictEqual([first, shares, newer].map((one) => stateOf(house, one)), [
      "done",
      "done",
      "done",
    ]);
  }));

Deno.test("openHouse() a yes that nothing followed before the question's time was over starts nothing", async () => {
  const test = testHouse(ASK);
  const house = test.open();
  await busy(house, test);
  const one = await asks(house);
  await approve(house, test.posted[0]?.code);
  strictEqual(stateOf(house, one), "queued");
  await house.close();
  const before = test.fake.runs.length;
  test.clock.setWall(test.clock.nowUnixMs() + 3 * 86_400_000);
  const later = test.open();
  await settled();
  strictEqual(stateOf(later, one), "approval_expired");
  strictEqual(test.fake.runs.length, before, "an answer of another day had an effect");
  await later.close();
});

Deno.test("request() a flood of calls is refused beyond what a stop can end at once", () =>
  withHouse(ASK, async (house, test) => {
    await busy(house, test);
    const session = openChat(house);
    const args = JSON.stringify({ path: ROOT });
    for (let i = 0; i < 1_000; i++) {
      house.calls.request({ session, turn: newTurn(), call: newCall(), tool: "list_dir", args });
    }
    const halted = house.halt("owner", "enough", null);
    ok(halted.ok && halted.value <= 256, `${halted.ok && halted.value} calls were waiting`);
    await settled();
    strictEqual(test.fake.runs.length, 1);
  }));

Deno.test("request() when questions take every place the owner still answers, looks and stops", () =>
  withHouse(ASK, async (house, test) => {
    for (let i = 0; i < 256; i++) await asks(house);
    const late = await asks(house);
    ok(late.answer.ok && late.answer.value.is === "ended");
    strictEqual(late.answer.value.result.code, "limit_reached");
    match(late.answer.value.result.message, /bxctl approvals.*bxctl stop/);
    strictEqual(house.approvals.list("pending").length, 256);
    await approve(house, test.posted[7]?.code);
    strictEqual(test.fake.runs.length, 1);
    const freed = await asks(house);
    strictEqual(stateOf(house, freed), "waiting_approval");
    const halted = house.halt("owner", "enough", null);
    ok(halted.ok && halted.value === 256);
    ok(house.calls.isIdle());
    strictEqual(house.approvals.list("pending").length, 0);
    ok(house.resume().ok);
    strictEqual(stateOf(house, await asks(house)), "waiting_approval");
  }));

Deno.test("openHouse() a question of a month ago is denied as expired, not forgotten", async () => {
  const test = testHouse(ASK);
  const house = test.open();
  const one = await asks(house);
  await house.close();
  test.clock.setWall(test.clock.nowUnixMs() + 31 * 86_400_000);
  const later = test.open();
  await settled();
  strictEqual(stateOf(later, one), "approval_expired");
  await later.close();
  await test.open().close();
  strictEqual(test.disk.list(`${HOME}/broker/approvals`).length, 0);
});

Deno.test("current() grants whose change a full disk keeps from the record are not in force", () =>
  withHouse(ASK, async (house, test) => {
    const room = full(test, "/audit/head");
    test.grant("list.toml", grantToml("list_dir", "auto", "# anew\n"));
    const { set } = house.grants.current();
    ok(set.isAllBlocked, "unrecorded grants allow something");
    room();
    ok(!house.grants.current().set.isAllBlocked);
    const last = [...house.audit.records()].at(-1);
    strictEqual(last?.kind, "grants");
    await settled();
  }));

Deno.test("request() a page of a granted origin cannot lead to one that another grant denies", async () => {
  const test = testHouse({
    grants: {
      "fetch.toml": `tool = "http_fetch"\nmode = "auto"\nmax_taint = "private"\n` +
        `result_class = "private"\nhosts = ["https://a.example:443", "https://bad.example:443"]\n`,
      "bad.toml": `tool = "http_fetch"\nmode = "deny"\nhosts = ["https://bad.example:443"]\n`,
    },
  });
  const asked: (readonly string[])[] = [];
  Object.assign(test.ports, {
    egress: ({ origins }: { origins: string[] }) => {
      asked.push(origins);
      return Promise.resolve(err("egress-unavailable", "No way out"));
    },
  });
  const house = test.open();
  await asks(house, openChat(house), "http_fetch", JSON.stringify({ url: "https://a.example/" }));
  deepStrictEqual(asked, [["https://a.example:443"]]);
  await house.close();
});

Deno.test("repair() a call that had begun stays unknown, also when the log goes on in another month", async () => {
  const test = testHouse({ grants: { "read.toml": grantToml("read_file", "auto") } });
  const house = test.open();
  test.fake.script = () => new Promise(() => {});
  const one = await asks(house);
  strictEqual(test.fake.runs.length, 1);
  house.audit.close();
  const log = `${HOME}/audit/2026-11.jsonl`;
  const bytes = bytesOf(test, log);
  bytes[60] = 0x7a;
  const next = testHouse({}, test.disk.afterKill());
  next.disk.plant(log, bytes);
  next.grant("read.toml", grantToml("read_file", "auto"));
  next.clock.setWall(next.clock.nowUnixMs() + 2 * 86_400_000);
  const opened = openHouse(next.ports);
  ok(!opened.ok && opened.code === "audit-broken");
  ok(repairClosed(next.ports, `${HOME}/audit`, opened).ok);
  const after = next.open();
  after.calls.request(one);
  await settled();
  deepStrictEqual(next.fake.runs, [], "a call that had begun was run again");
  strictEqual(stateOf(after, one), "outcome_unknown");
  await after.close();
});

Deno.test("repair() a yes that only a damaged file speaks of is none", async () => {
  const test = testHouse(ASK);
  const house = test.open();
  const one = await asks(house);
  const [asked] = house.approvals.list("pending");
  await house.close();
  const log = `${HOME}/audit/2026-11.jsonl`;
  const lines = new TextDecoder().decode(bytesOf(test, log));
  const forged = /.*"event":"asked".*\n/.exec(lines)?.[0].replace('"asked"', '"approved"');
  test.disk.plant(log, encodeUtf8(lines + forged));
  const opened = openHouse(test.ports);
  ok(!opened.ok && opened.code === "audit-broken");
  ok(repairClosed(test.ports, `${HOME}/audit`, opened).ok);
  const after = test.open();
  await settled();
  strictEqual(stateOf(after, one), "waiting_approval");
  strictEqual(after.approvals.list("pending")[0]?.approval, asked?.approval);
  deepStrictEqual(test.fake.runs, []);
  await after.close();
});

Deno.test("verify() leaves no file of the log open, however often it is asked", async () => {
  const test = testHouse();
  const house = test.open();
  test.clock.setWall(test.clock.nowUnixMs() + 2 * 86_400_000);
  ok(house.audit.rotateIfDue().ok);
  // Damage in the older file makes it look at the start of the newer one.
  const log = `${HOME}/audit/2026-11.jsonl`;
  const bytes = bytesOf(test, log);
  bytes[60] = 0x7a;
  test.disk.plant(log, bytes);
  let held = 0;
  const open = test.disk.open;
  test.disk.open = (path, mode) => {
    const file = open(path, mode);
    held++;
    return {
      ...file,
      close: () => {
        held--;
        file.close();
      },
    };
  };
  for (let i = 0; i < 3; i++) ok((await house.audit.verify(null, () => {})).ok);
  strictEqual(held, 0);
  await house.close();
});

Deno.test("open() a session whose id is of the future is not opened anew when its file is gone", async () => {
  const test = testHouse();
  const house = test.open();
  const session = SessionId.parse(`chat-7${"Z".repeat(25)}`);
  const opening = { session, kind: "chat", job: null, workspace: null } as const;
  ok(house.sessions.open(opening).ok);
  ok(house.sessions.raise(session, { class: "secret", untrusted: true }, "a page").ok);
  test.clock.setWall(test.clock.nowUnixMs() + 2 * 86_400_000);
  ok(house.audit.rotateIfDue().ok);
  await house.close();
  test.disk.unlink(`${HOME}/broker/sessions/${session}.json`);
  const next = test.open();
  const again = next.sessions.open(opening);
  ok(again.ok);
  deepStrictEqual(again.value.label, { class: "secret", untrusted: true });
  await next.close();
});

Deno.test("open() a session without its file is not opened anew by a brokerd whose clock was behind at its start", async () => {
  const test = testHouse();
  const house = test.open();
  const session = openChat(house);
  const secret = { class: "secret", untrusted: true } as const;
  ok(house.sessions.raise(session, secret, "a page").ok);
  const now = test.clock.nowUnixMs();
  test.clock.setWall(now + 2 * 86_400_000);
  ok(house.audit.rotateIfDue().ok);
  await house.close();
  test.disk.unlink(`${HOME}/broker/sessions/${session}.json`);
  test.clock.setWall(now - 40 * 86_400_000);
  const next = test.open();
  test.clock.setWall(now + 3 * 86_400_000);
  const again = next.sessions.open({ session, kind: "chat", job: null, workspace: null });
  ok(again.ok);
  deepStrictEqual(again.value.label, secret);
  await next.close();
});

Deno.test("request() a day's limit holds over starts whose clock was far ahead", async () => {
  const limits = "[limits]\ncalls_per_day = 2\n";
  const test = testHouse({ grants: { "list.toml": grantToml("list_dir", "auto", limits) } });
  const now = test.clock.nowUnixMs();
  const codes: string[] = [];
  for (const days of [0, 400, 500, 0, 0]) {
    test.clock.setWall(now + days * 86_400_000);
    const house = test.open();
    if (days === 0) {
      const one = await asks(house, openChat(house), "list_dir", JSON.stringify({ path: ROOT }));
      codes.push(stateOf(house, one));
    }
    await house.close();
  }
  deepStrictEqual(codes, ["done", "done", "limit_reached"]);
});

Deno.test("auditRoutes() a repair that is asked for twice at once puts nothing sound aside", async () => {
  const test = testHouse();
  const house = test.open();
  const log = `${HOME}/audit/2026-11.jsonl`;
  openChat(house);
  const bytes = bytesOf(test, log);
  bytes[60] = 0x7a;
  test.disk.plant(log, bytes);
  const found = await house.audit.verify(null, () => {});
  ok(found.ok && !found.value.is_whole);
  const path = Deno.makeTempDirSync() + "/s";
  const server = listen({ path, routes: auditRoutes(house.audit), log: () => {} });
  const { finding } = found.value;
  const done = await Promise.all([1, 2].map(() => call(path, AUDIT_REPAIR, { finding })));
  strictEqual(done.filter((one) => one.ok && one.value.body.is_done).length, 1);
  await server.close();
  deepStrictEqual(
    test.disk.list(`${HOME}/audit`).map((one) => one.name).filter((name) => /broken/.test(name)),
    ["2026-11.jsonl.broken-1"],
  );
  await house.close();
});
