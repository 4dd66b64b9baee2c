// Guards the order of record and effect on a disk that is full at any one write: what the owner is told,
// and what happens, stands in the log before, as a power cut at that very moment would leave it.
import { deepStrictEqual, ok, strictEqual, throws } from "node:assert";
import { DiskError } from "../../shared/disk/disk.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { approve, ASK, asks, busy, full, stateOf } from "../../tests/doubles/broker_calls.ts";
import type { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import {
  DiskDied,
  grantToml,
  HOME,
  newCall,
  newSession,
  newTurn,
  openChat,
  ROOT,
  testHouse,
  withHouse,
} from "../../tests/doubles/broker_house.ts";
import { AUDIT_DOMAIN, auditRecordOf } from "./audit_records.ts";

const OPTIONS = { grants: { "list.toml": grantToml("list_dir", "ask") } };
const ARGS = JSON.stringify({ path: ROOT });

/** What the log says after a power cut that loses all that was not synced. */
function durable(disk: FaultyDisk): string[] {
  const [worst] = disk.afterCrash("edges");
  ok(worst !== undefined);
  return [...readChain(worst, `${HOME}/audit/2026-11.jsonl`, AUDIT_DOMAIN)].flatMap((item) => {
    const record = item.ok ? auditRecordOf(item.value.value) : null;
    if (record === null || record.kind === "grants") return [];
    return record.kind === "approval" ? record.event : record.kind;
  });
}

/** One yes with the fault at call `failAt`, then room or a kill; whether the disk came that far. */
async function oneYes(failAt: number, lasting: "once" | "for_good", isKilled: boolean) {
  const at = `${lasting}, write ${failAt}`;
  const first = testHouse(OPTIONS);
  let test = first;
  let house = test.open();
  const one = { session: openChat(house), turn: newTurn(), call: newCall() };
  house.calls.request({ ...one, tool: "list_dir", args: ARGS });
  await settled();
  const told: string[][] = [];
  const watched = () => {
    const { script } = test.fake;
    test.fake.script = (plan, io) => {
      told.push(durable(test.disk));
      return script(plan, io);
    };
  };
  watched();
  let hasDied = false;
  const quiet = (event: PromiseRejectionEvent) => {
    if (!(event.reason instanceof DiskDied)) return;
    event.preventDefault();
    hasDied = true;
  };
  globalThis.addEventListener("unhandledrejection", quiet);
  const before = test.disk.calls();
  test.disk.setFault({ failAt, kind: "no_space", lasting, seed: failAt });
  try {
    const said = house.approvals.answer(first.posted[0]?.code ?? "", "approve", "owner", null);
    if (said.ok && said.value.outcome === "approved") {
      ok(durable(test.disk).includes("approved"), `${at}: the owner was told of an unrecorded yes`);
    }
    await settled();
  } catch (thrown) {
    ok(thrown instanceof DiskDied, String(thrown));
    hasDied = true;
  }
  await new Promise((resolve) => setTimeout(resolve, 0));
  globalThis.removeEventListener("unhandledrejection", quiet);
  const met = test.disk.calls() - before >= failAt;
  // A head that was half written ends the process.
  if (isKilled || hasDied) {
    test = testHouse(OPTIONS, test.disk.afterKill());
    watched();
    house = test.open();
  } else test.disk.setFault(null);
  for (let i = 0; i < 4; i++) await test.clock.advance(5_000);
  for (const log of told) {
    const order = ["decision", "asked", "approved", "start"];
    strictEqual(log.slice(1).join(), order.join(), `${at}: an effect came before its record`);
  }
  const [open] = house.approvals.list("pending");
  if (open !== undefined) house.approvals.answer(open.code, "approve", "owner", null);
  await settled();
  const now = house.calls.fetch(one.session, one.call);
  ok(now.ok && now.value.is === "ended", `${at}: the call never ends`);
  const { outcome, code } = now.value.result;
  // A path that could not be looked at, or output that found no room.
  const isNamed = ["path-unusable", "path_outside", "disk-full", "outcome_unknown"]
    .includes(code ?? "");
  ok(isNamed || (outcome === "done" && told.length === 1), `${at}: ${code}, ${told.length} runs`);
  strictEqual(durable(test.disk).filter((said) => said === "approved").length, 1, at);
  await house.close();
  return met;
}

Deno.test("answer() on a disk that is full at any write no yes is told or followed before its record", async () => {
  for (const lasting of ["once", "for_good"] as const) {
    for (const isKilled of [false, true]) {
      let failAt = 1;
      while (await oneYes(failAt, lasting, isKilled)) failAt++;
      ok(failAt > 10, `${failAt} writes were met`);
    }
  }
});

Deno.test("openHouse() a sync that fails ends the process, whatever file it was for", () => {
  for (const part of ["/sessions/", "/approvals/", "/results/"]) {
    const test = testHouse(OPTIONS);
    const house = test.open();
    const session = part === "/sessions/" ? newSession() : openChat(house);
    const open = test.disk.open;
    test.disk.open = (path, mode) => {
      const file = open(path, mode);
      const sync = () => {
        throw new DiskError("io", "Injected: the sync failed");
      };
      return path.includes(part) ? { ...file, sync } : file;
    };
    const ids = { session, turn: newTurn(), call: newCall(), args: ARGS };
    throws(() => {
      house.sessions.open({ session, kind: "chat", job: null, workspace: null });
      house.calls.request({ ...ids, tool: part === "/results/" ? "no_such_tool" : "list_dir" });
    }, DiskDied);
  }
});

Deno.test("request() a session's file that finds no room costs neither its label nor a second record", async () => {
  const own = grantToml("read_file", "auto");
  const strange = own.replace("untrusted = false", "untrusted = true");
  const test = testHouse({ grants: { "read.toml": strange } });
  const house = test.open();
  const session = openChat(house);
  const open = test.disk.open;
  test.disk.open = (path, mode) => {
    if (path.includes("/sessions/")) throw new DiskError("no_space", "Injected: full");
    return open(path, mode);
  };
  const ids = { session, turn: newTurn(), call: newCall() };
  house.calls.request({
    ...ids,
    tool: "read_file",
    args: JSON.stringify({ path: `${ROOT}/a.txt` }),
  });
  await settled();
  await test.clock.advance(10_000);
  test.disk.open = open;
  const label = { class: "private", untrusted: true };
  deepStrictEqual(house.sessions.find(session)?.label, label);
  strictEqual([...house.audit.records()].filter((one) => one.kind === "result").length, 1);
  await house.close();
  const next = test.open();
  deepStrictEqual(next.sessions.find(session)?.label, label);
  await next.close();
});

Deno.test("halt() a stop that the log or the file holds holds over a kill, wherever the disk was full", () => {
  let failed = 0;
  for (let failAt = 1, met = true; met; failAt++) {
    const test = testHouse(OPTIONS);
    const house = test.open();
    const before = test.disk.calls();
    test.disk.setFault({ failAt, kind: "no_space", lasting: "once", seed: failAt });
    let isDone = false;
    try {
      isDone = house.halt("owner", "enough", null).ok;
    } catch (thrown) {
      ok(thrown instanceof DiskDied);
    }
    met = test.disk.calls() - before >= failAt;
    const isSaid = durable(test.disk).at(-1) === "stop";
    const left = test.disk.afterKill();
    const next = testHouse(OPTIONS, left).open();
    ok(next.stop.isStopped() || !(isSaid || isDone), `write ${failAt}`);
    if (!isDone) failed++;
    if (!next.stop.isStopped()) continue;
    ok(next.resume().ok);
    ok(!testHouse(OPTIONS, left).open().stop.isStopped());
  }
  ok(failed > 3);
});

Deno.test("cancel() a question whose end the log has no room for is shared by no later call", () =>
  withHouse(ASK, async (house, test) => {
    const one = await asks(house);
    const room = full(test, "/audit/head");
    house.calls.cancel(one.session, one.call);
    room();
    const later = await asks(house, one.session);
    const old = house.approvals.answer(test.posted[0]?.code ?? "", "approve", "owner", null);
    ok(old.ok && old.value.outcome === "expired", JSON.stringify(old));
    await approve(house, test.posted[1]?.code);
    strictEqual(stateOf(house, later), "done");
    strictEqual(test.fake.runs.length, 1);
    await test.clock.advance(120_000);
    strictEqual(house.approvals.list("pending").length, 0);
  }));

Deno.test("halt() a stop that only the log could hold holds into later months", async () => {
  for (const endsLate of [false, true]) {
    const test = testHouse(ASK);
    const house = test.open();
    await busy(house, test);
    // What ran at the stop may find room for its end only in another month.
    const rooms = [full(test, "/stopped.json"), ...(endsLate ? [full(test, "/results/")] : [])];
    ok(!house.halt("owner", "enough", null).ok);
    await settled();
    test.clock.setWall(Date.UTC(2026, 11, 2));
    for (const room of rooms.toReversed()) room();
    await test.clock.advance(2_000);
    ok(house.calls.isIdle());
    await house.close();
    for (const day of [3, 4, 5]) {
      test.clock.setWall(Date.UTC(2026, 11, day));
      const after = test.open();
      ok(after.stop.isStopped(), `${endsLate}, day ${day}`);
      await after.close();
    }
  }
});

Deno.test("onClosed() a yes is not spent while new grants cannot be recorded, and follows once they are", () =>
  withHouse(ASK, async (house, test) => {
    const one = await asks(house);
    test.grant("other.toml", grantToml("search_files", "auto"));
    const open = test.disk.open;
    let heads = 0;
    test.disk.open = (path, mode) => {
      // The yes itself is the first record, the grants are the next.
      const isFull = path.includes("/audit/head") && mode !== "read" && ++heads === 2;
      if (isFull) throw new DiskError("no_space", "Injected: full");
      return open(path, mode);
    };
    await approve(house, test.posted[0]?.code);
    strictEqual(stateOf(house, one), "queued");
    await test.clock.advance(2_000);
    strictEqual(stateOf(house, one), "done");
    const kinds = [...house.audit.records()].map((said) => said.kind);
    deepStrictEqual(kinds.slice(-4), ["approval", "grants", "start", "result"]);
  }));

Deno.test("restore() an answer whose file found no room is no second end in a later month", async () => {
  const test = testHouse(ASK);
  const house = test.open();
  const one = await asks(house);
  const room = full(test, "/approvals/");
  await approve(house, test.posted[0]?.code);
  room();
  strictEqual(stateOf(house, one), "done");
  await house.close();
  for (const day of [2, 3]) {
    test.clock.setWall(Date.UTC(2026, 11, day));
    const after = test.open();
    await settled();
    const ends = [...after.audit.records()].flatMap((said) =>
      said.kind === "approval" && said.event !== "asked" ? said.event : []
    );
    deepStrictEqual(ends, ["approved"], `day ${day}`);
    await after.close();
  }
});
