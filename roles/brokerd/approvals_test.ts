// Guards the owner's word: asked once, answered once, for exactly what was shown, and never by
// silence. Every test runs the real path from the request on.
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { ApprovalId } from "../../shared/ids/ids.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import {
  grantToml,
  heldScript,
  HOME,
  newCall,
  newTurn,
  openChat,
  ROOT,
  type TestHouse,
  testHouse,
  withHouse,
} from "../../tests/doubles/broker_house.ts";
import type { Via } from "./approvals.ts";
import type { House } from "./house.ts";

const PATH = JSON.stringify({ path: `${ROOT}/a.txt` });
const GRANTS = { "read.toml": grantToml("read_file", "ask") };

async function asks(house: House, ids: Partial<{ session: ReturnType<typeof openChat> }> = {}) {
  const one = { session: ids.session ?? openChat(house), turn: newTurn(), call: newCall() };
  const answer = house.calls.request({ ...one, tool: "read_file", args: PATH });
  await settled();
  return { ...one, answer };
}

function stateOf(house: House, one: Awaited<ReturnType<typeof asks>>): string {
  const now = house.calls.fetch(one.session, one.call);
  ok(now.ok);
  if (now.value.is === "pending") return now.value.pending.state;
  ok(now.value.is === "ended");
  return now.value.result.code ?? now.value.result.outcome;
}

function say(
  house: House,
  code: string,
  answer: "approve" | "deny",
  via: Via = "owner",
  session: ReturnType<typeof openChat> | null = null,
): string {
  const said = house.approvals.answer(code, answer, via, session);
  ok(said.ok);
  return said.value.outcome;
}

const codeOf = (test: TestHouse, i = 0) => test.posted[i]?.code ?? "none";

const inHouse = (
  body: (house: House, test: TestHouse) => Promise<void>,
  config: unknown = {},
) => withHouse({ grants: GRANTS, config }, body);

Deno.test("answer() silence, a wrong code and a used code approve nothing", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    const code = codeOf(test);
    for (const wrong of ["", " ", "000000", code.slice(0, 5), `${code}x`, `${code}${code}`, "*"]) {
      strictEqual(say(house, wrong, "approve"), "unknown", wrong);
    }
    await test.clock.advance(899_999);
    strictEqual(stateOf(house, one), "waiting_approval");
    await test.clock.advance(1);
    strictEqual(stateOf(house, one), "approval_expired");
    strictEqual(say(house, code, "approve"), "expired");
    deepStrictEqual(test.fake.runs, []);
  }));

Deno.test("answer() one yes lets the call run once; a second answer of any kind is too late", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    strictEqual(say(house, codeOf(test), "approve"), "approved");
    strictEqual(say(house, codeOf(test), "approve"), "already_answered");
    strictEqual(say(house, codeOf(test), "deny"), "already_answered");
    await settled();
    strictEqual(stateOf(house, one), "done");
    strictEqual(test.fake.runs.length, 1);
    const kinds = [...house.audit.records()].flatMap((record) =>
      record.kind === "approval" ? `${record.event} ${record.via}` : record.kind
    );
    deepStrictEqual(kinds.slice(2), [
      "decision",
      "asked broker",
      "approved owner",
      "start",
      "result",
    ]);
  }));

Deno.test("answer() a no denies, and the same request within a minute is not asked again", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    strictEqual(say(house, codeOf(test), "deny"), "denied");
    strictEqual(stateOf(house, one), "denied_by_owner");
    const again = await asks(house, one);
    strictEqual(stateOf(house, again), "denied_by_owner");
    strictEqual(test.posted.length, 1);
    const elsewhere = await asks(house);
    strictEqual(stateOf(house, elsewhere), "waiting_approval");
    await test.clock.advance(61_000);
    const later = await asks(house, one);
    strictEqual(stateOf(house, later), "waiting_approval");
    deepStrictEqual(test.fake.runs, []);
  }));

Deno.test("answer() a code is read as a person types it, and only in its own thread", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    const code = codeOf(test);
    match(code, /^[0-9a-hjkmnp-tv-z]{6}$/);
    strictEqual(say(house, code, "approve", "gateway", openChat(house)), "wrong_thread");
    strictEqual(stateOf(house, one), "waiting_approval");
    const typed = ` ${code.toUpperCase().slice(0, 3)}-${
      code.slice(3).replaceAll("0", "o").replaceAll("1", "l")
    } `;
    strictEqual(say(house, typed, "approve", "gateway", one.session), "approved");
  }));

Deno.test("answer() a thread that was made for another question answers only that one", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    const [mine] = house.approvals.list("pending");
    const made = ApprovalId.parse(`a-${"0".repeat(26)}`);
    const said = (madeFor: ApprovalId) =>
      house.approvals.answer(codeOf(test), "approve", "gateway", one.session, madeFor);
    const wrong = said(made);
    ok(wrong.ok);
    strictEqual(wrong.value.outcome, "wrong_thread");
    strictEqual(stateOf(house, one), "waiting_approval");
    const right = said(mine?.approval ?? made);
    ok(right.ok);
    strictEqual(right.value.outcome, "approved");
  }));

Deno.test("answer() a grant for bxctl alone is not answered over the channel", async () => {
  const test = testHouse({
    grants: { "read.toml": grantToml("read_file", "ask", 'approver = "local"\n') },
  });
  const house = test.open();
  const one = await asks(house);
  strictEqual(say(house, codeOf(test), "approve", "gateway", one.session), "local_only");
  strictEqual(say(house, codeOf(test), "deny", "gateway", null), "wrong_thread");
  strictEqual(stateOf(house, one), "waiting_approval");
  strictEqual(say(house, codeOf(test), "approve", "owner"), "approved");
  await house.close();
});

Deno.test("ask() the same request while it is asked folds into one question and one effect", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    const two = await asks(house, one);
    const other = await asks(house);
    strictEqual(test.posted.length, 2, "another session has a question of its own");
    say(house, codeOf(test), "approve");
    await settled();
    strictEqual(stateOf(house, one), "done");
    strictEqual(stateOf(house, two), "done");
    strictEqual(stateOf(house, other), "waiting_approval");
    strictEqual(test.fake.runs.length, 1);
    const second = house.results.load(two.call);
    ok(second.ok && second.value !== null);
    const text = [...house.results.output(second.value)].map((piece) =>
      new TextDecoder().decode(piece)
    );
    strictEqual(text.join(""), 'ran {"path":"/grant/0"}');
    ok(house.calls.acknowledge(one.session, one.call).ok);
    ok([...house.results.output(second.value)].length > 0, "the other's output went with it");
  }));

Deno.test("ask() a session that asks too often is throttled, with one alarm an hour", () =>
  inHouse(async (house, test) => {
    const session = openChat(house);
    for (let i = 0; i < 3; i++) {
      await asks(house, { session });
      say(house, codeOf(test, i), "approve");
      await settled();
    }
    for (let i = 0; i < 3; i++) {
      strictEqual(stateOf(house, await asks(house, { session })), "throttled");
    }
    strictEqual(test.posted.length, 3);
    strictEqual(test.notices.length, 1);
    strictEqual(stateOf(house, await asks(house)), "waiting_approval");
    await test.clock.advance(3_600_001);
    strictEqual(stateOf(house, await asks(house, { session })), "waiting_approval");
  }, { approvals: { per_hour: 3 } }));

Deno.test("onClosed() what changed between yes and start is looked at: revoked, tightened, tainted", () =>
  inHouse(async (house, test) => {
    const revoked = await asks(house);
    test.grant("read.toml", null);
    strictEqual(say(house, codeOf(test), "approve"), "approved");
    await settled();
    strictEqual(stateOf(house, revoked), "no_grant");

    test.grant("read.toml", grantToml("read_file", "ask"));
    const changed = await asks(house);
    test.grant("read.toml", grantToml("read_file", "ask", "# another file now\n"));
    strictEqual(say(house, codeOf(test, 1), "approve"), "approved");
    await settled();
    strictEqual(stateOf(house, changed), "waiting_approval");
    strictEqual(test.posted.length, 3);
    notStrictEqual(codeOf(test, 2), codeOf(test, 1));
    const codes = [...house.audit.records()].flatMap((one) =>
      one.kind === "decision" ? one.code ?? [] : []
    );
    ok(codes.includes("changed_since_approval"));

    house.sessions.raise(changed.session, { class: "private", untrusted: true }, "a page");
    strictEqual(say(house, codeOf(test, 2), "approve"), "approved");
    await settled();
    strictEqual(stateOf(house, changed), "waiting_approval");
    strictEqual(say(house, codeOf(test, 3), "approve"), "approved");
    await settled();
    strictEqual(stateOf(house, changed), "done");
    strictEqual(test.fake.runs.length, 1);
  }));

Deno.test("onClosed() an approved file that was swapped for another place does not run", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    test.disk.unlink(`${ROOT}/a.txt`);
    say(house, codeOf(test), "approve");
    await settled();
    strictEqual(stateOf(house, one), "path-unusable");
    deepStrictEqual(test.fake.runs, []);
  }));

Deno.test("openHouse() a question survives a restart, can still be answered, and still expires", async () => {
  const test = testHouse({ grants: GRANTS });
  const first = test.open();
  const one = await asks(first);
  const folded = await asks(first, one);
  const late = await asks(first);
  await first.close();

  const second = test.open();
  await settled();
  strictEqual(stateOf(second, one), "waiting_approval");
  strictEqual(test.posted.length, 4, "what waits is posted again");
  strictEqual(say(second, codeOf(test), "approve"), "approved");
  await settled();
  strictEqual(stateOf(second, one), "done");
  strictEqual(stateOf(second, folded), "done");
  strictEqual(test.fake.runs.length, 1);
  await second.close();

  test.clock.setWall(test.clock.nowUnixMs() + 900_000);
  const third = test.open();
  await settled();
  await test.clock.advance(1);
  strictEqual(stateOf(third, late), "approval_expired");
  strictEqual(stateOf(third, one), "done");
  strictEqual(say(third, codeOf(test), "approve"), "already_answered");
  strictEqual(test.fake.runs.length, 1);
  await third.close();
});

Deno.test("openHouse() a question that was asked anew is not taken up beside the newer one", async () => {
  // Whichever of two ids of the same moment sorts first.
  for (let round = 0; round < 8; round++) {
    const test = testHouse({ grants: GRANTS, config: { runtime: { concurrent: 1 } } });
    for (let i = 0; i < round; i++) test.ports.random.bytes(16);
    const first = test.open();
    test.fake.script = heldScript().script;
    const busy = await asks(first);
    say(first, codeOf(test), "approve");
    await settled();
    const one = await asks(first);
    first.sessions.raise(one.session, { class: "private", untrusted: true }, "a page");
    strictEqual(say(first, codeOf(test, 1), "approve"), "approved");
    await settled();
    strictEqual(stateOf(first, one), "waiting_approval", "the label changed, so it asks again");
    strictEqual(say(first, codeOf(test, 2), "approve"), "approved");
    await settled();
    strictEqual(stateOf(first, one), "queued");
    strictEqual(stateOf(first, busy), "running");
    await first.close();

    const second = test.open();
    await settled();
    strictEqual(test.posted.length, 3, "the owner was asked what was answered already");
    deepStrictEqual(second.approvals.list("pending"), []);
    await second.close();
  }
});

Deno.test("openHouse() a question whose file was changed or cut answers nothing", async () => {
  const test = testHouse({ grants: GRANTS });
  const first = test.open();
  const one = await asks(first);
  await asks(first);
  await first.close();
  const folder = `${HOME}/broker/approvals`;
  const [a, b] = test.disk.list(folder).map((entry) => `${folder}/${entry.name}`);
  ok(a !== undefined && b !== undefined);
  const read = (path: string) => {
    const file = test.disk.open(path, "read");
    const bytes = new Uint8Array(file.stat().size);
    file.read(bytes);
    file.close();
    const text = decodeUtf8(bytes);
    ok(text.ok);
    return text.value;
  };
  test.disk.plant(a, encodeUtf8(read(a).replace(`${ROOT}/a.txt`, `${ROOT}/b.txt`)));
  test.disk.plant(b, encodeUtf8(read(b).slice(0, -2)));
  const next = test.open();
  deepStrictEqual(next.approvals.list("all"), []);
  strictEqual(say(next, codeOf(test), "approve"), "unknown");
  strictEqual(say(next, codeOf(test, 1), "approve"), "unknown");
  ok(!next.calls.fetch(one.session, one.call).ok);
  deepStrictEqual(test.fake.runs, []);
  await next.close();
});

Deno.test("answer() a wall clock set back does not revive a question that has expired", () =>
  inHouse(async (house, test) => {
    const one = await asks(house);
    await test.clock.advance(900_000);
    strictEqual(stateOf(house, one), "approval_expired");
    test.clock.setWall(test.clock.nowUnixMs() - 600_000);
    strictEqual(say(house, codeOf(test), "approve"), "expired");
    deepStrictEqual(test.fake.runs, []);
  }));
