// Guards exactly-once through every crash: brokerd dies at each single disk call of a call's life, by
// kill or by power cut, comes back, and is asked for the same call again.
import { ok, strictEqual } from "node:assert";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { type FaultyDisk, SimulatedCrash } from "../../tests/doubles/faulty_disk.ts";
import {
  grantToml,
  makeDisk,
  newCall,
  newSession,
  newTurn,
  ROOT,
  type TestHouse,
  testHouse,
} from "../../tests/doubles/broker_house.ts";
import type { House } from "./house.ts";

const OPTIONS = {
  grants: {
    "a.toml": grantToml("read_file", "auto", "[limits]\noutput_bytes = 100\n"),
    "b.toml": grantToml("list_dir", "ask"),
  },
};
const ids = { session: newSession(), turn: newTurn() };
const CALLS = [
  { ...ids, call: newCall(), tool: "read_file", args: JSON.stringify({ path: `${ROOT}/a.txt` }) },
  { ...ids, call: newCall(), tool: "list_dir", args: JSON.stringify({ path: ROOT }) },
  { ...ids, call: newCall(), tool: "memory", args: '{"action":"note","text":"x"}' },
];

type Life = { readonly house: House; readonly test: TestHouse };

/** One life: open, ask for every call, say yes to what is asked, let it all end. */
async function live(test: TestHouse): Promise<Life> {
  const house = test.open();
  house.sessions.open({ session: ids.session, kind: "chat", job: null, workspace: null });
  for (const one of CALLS) {
    house.calls.request(one);
    await settled();
    for (const pending of house.approvals.list("pending")) {
      house.approvals.answer(pending.code, "approve", "owner", null);
      await settled();
    }
  }
  await test.clock.advance(10_000);
  return { house, test };
}

/** Runs `body`; a crash of the disk, wherever it surfaces, ends it quietly. */
async function untilCrash(body: () => Promise<unknown>): Promise<void> {
  const quiet = (event: PromiseRejectionEvent) => {
    if (event.reason instanceof SimulatedCrash) event.preventDefault();
  };
  globalThis.addEventListener("unhandledrejection", quiet);
  try {
    await body();
  } catch (thrown) {
    if (!(thrown instanceof SimulatedCrash)) throw thrown;
  }
  await new Promise((resolve) => setTimeout(resolve, 0));
  globalThis.removeEventListener("unhandledrejection", quiet);
}

function effects(test: TestHouse, memory: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const run of test.fake.runs) counts.set(run.callId, (counts.get(run.callId) ?? 0) + 1);
  for (const call of memory) counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
}

function counting(disk: FaultyDisk): { test: TestHouse; memory: string[] } {
  const test = testHouse(OPTIONS, disk);
  const memory: string[] = [];
  const said = test.ports.memory;
  const ports = Object.assign(test.ports, {
    memory: (...args: Parameters<typeof said>) => {
      memory.push(args[0].call);
      return said(...args);
    },
  });
  ok(ports === test.ports);
  return { test, memory };
}

/** Asks for everything again on what a crash left; returns how many calls came out unknown. */
async function check(disk: FaultyDisk, before: Map<string, number>, at: string): Promise<number> {
  const { test, memory } = counting(disk);
  const { house } = await live(test);
  const after = effects(test, memory);
  let unknown = 0;
  for (const one of CALLS) {
    const ran = (before.get(one.call) ?? 0) + (after.get(one.call) ?? 0);
    ok(ran <= 1, `${at}: ${one.tool} ran ${ran} times`);
    const now = house.calls.fetch(one.session, one.call);
    ok(now.ok && now.value.is === "ended", `${at}: ${one.tool} has no end`);
    const { outcome } = now.value.result;
    ok(outcome === "done" || outcome === "unknown", `${at}: ${one.tool} is ${outcome}`);
    if (outcome === "done") strictEqual(ran, 1, `${at}: ${one.tool} is done but never ran`);
    if (outcome === "unknown") strictEqual(after.get(one.call) ?? 0, 0, at);
    if (outcome === "unknown") unknown++;
  }
  const verified = await house.audit.verify(null, () => {});
  ok(verified.ok && verified.value.is_whole, `${at}: ${verified.ok ? verified.value.finding : ""}`);
  await house.close();
  return unknown;
}

Deno.test("request() a crash at any disk call runs nothing twice and loses no outcome", async () => {
  let unknown = 0;
  for (let failAt = 1;; failAt++) {
    const disk = makeDisk(OPTIONS);
    const { test, memory } = counting(disk);
    disk.setFault({ failAt, kind: "crash", lasting: "for_good", seed: failAt });
    await untilCrash(() => live(test));
    if (!disk.hasCrashed()) {
      ok(failAt > 100, "the scenario met the disk");
      break;
    }
    const before = effects(test, memory);
    unknown += await check(disk.afterKill(), before, `kill at call ${failAt}`);
    // The first of the disks a power cut could leave has lost everything that was not synced.
    for (const cut of failAt % 3 === 0 ? disk.afterCrash("edges") : []) {
      await check(cut, before, `power cut at call ${failAt}`);
      break;
    }
  }
  ok(unknown > 0, "no crash came between a start and its end");
});

Deno.test("request() a disk that fails once or for good ends every call by name, and runs nothing twice", async () => {
  for (const kind of ["io", "no_space"] as const) {
    for (const lasting of ["once", "for_good"] as const) {
      for (let failAt = 60; failAt < 260; failAt += 7) {
        const disk = makeDisk(OPTIONS);
        const { test, memory } = counting(disk);
        const first = await live(test).catch(() => null);
        await first?.house.close();
        disk.setFault({ failAt, kind, lasting, seed: failAt });
        const again = counting(disk);
        let opened: House | null = null;
        try {
          opened = again.test.open();
          for (const one of CALLS) opened.calls.request(one);
          await settled();
        } catch (thrown) {
          ok(thrown instanceof Error && !(thrown instanceof TypeError), String(thrown));
        }
        disk.setFault(null);
        await again.test.clock.advance(20_000);
        await opened?.close();
        const before = effects(test, memory);
        const after = effects(again.test, again.memory);
        for (const one of CALLS) {
          ok((before.get(one.call) ?? 0) + (after.get(one.call) ?? 0) <= 1, `${kind} at ${failAt}`);
        }
      }
    }
  }
});

Deno.test("restore() calls that share one question all end, at whatever disk call brokerd was killed", async () => {
  const first = { ...ids, call: newCall(), tool: "list_dir", args: JSON.stringify({ path: ROOT }) };
  const both = [first, { ...first, call: newCall() }];
  const life = async (test: TestHouse) => {
    const house = test.open();
    house.sessions.open({ session: ids.session, kind: "chat", job: null, workspace: null });
    for (const one of both) house.calls.request(one);
    await settled();
    for (const one of house.approvals.list("pending")) {
      house.approvals.answer(one.code, "approve", "owner", null);
    }
    await test.clock.advance(10_000);
    return house;
  };
  let shared = 0;
  for (let failAt = 60;; failAt++) {
    const disk = makeDisk(OPTIONS);
    disk.setFault({ failAt, kind: "crash", lasting: "for_good", seed: failAt });
    await untilCrash(() => life(testHouse(OPTIONS, disk)));
    if (!disk.hasCrashed()) break;
    const test = testHouse(OPTIONS, disk.afterKill());
    const house = await life(test);
    for (const one of both) {
      const now = house.calls.fetch(one.session, one.call);
      ok(now.ok && now.value.is === "ended", `kill at call ${failAt}: a call never ends`);
    }
    ok(house.calls.isIdle(), `kill at call ${failAt}`);
    strictEqual(house.approvals.list("pending").length, 0, `kill at call ${failAt}`);
    if (test.fake.runs.length === 0) shared++;
    await house.close();
  }
  ok(shared > 0, "no crash came after the one run");
});
