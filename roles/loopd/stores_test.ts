// Guards the README's sentences on files: what was acknowledged is there after any failure and any
// kill, or is refused by name.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { MessageId, SessionId, TurnId, ulid } from "../../shared/ids/ids.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import {
  type Fault,
  type FaultKind,
  type FaultyDisk,
  faultyDisk,
  SimulatedCrash,
} from "../../tests/doubles/faulty_disk.ts";
import { readExamples } from "./examples.ts";
import { openSessionMarks } from "./open_sessions.ts";
import { openOutbox } from "./outbox.ts";
import type { Ports } from "./ports.ts";
import { createSession, openSession } from "./session_files.ts";
import { makeSlots, type Release } from "./slots.ts";

const random = seededRandom(5);
const session = SessionId.parse(`chat-${ulid(1, random)}`);
const turn = TurnId.parse(`t-${ulid(1, random)}`);
const root = "/sessions";
const folder = `${root}/${session}`;

const portsOf = (disk: Disk, fatal: string[] = []): Ports => ({
  clock: systemClock,
  random: seededRandom(8),
  disk,
  log: () => {},
  fatal: (detail) => void fatal.push(detail),
});
const userRecord = (i: number): SessionRecord => ({
  kind: "user",
  time_unix_ms: i,
  turn,
  message_id: MessageId.parse(`m-${i}`),
  content: `message ${i}`,
  artifact: null,
});
const baseline = {
  v: 1 as const,
  session,
  epoch: 0,
  created_unix_ms: 1,
  label: { class: "private" as const, untrusted: false },
  system: "s",
  examples: [],
  tools: [],
  sampling: {},
};

/** Runs `scenario` with a fault at each call in turn, and looks at what a killed process leaves. */
function underFaults(
  scenario: (disk: FaultyDisk) => void,
  check: (disk: FaultyDisk, fault: Fault) => void,
): void {
  const kinds: readonly FaultKind[] = ["io", "no_space", "short", "crash"];
  for (const kind of kinds) {
    for (const lasting of ["once", "for_good"] as const) {
      for (let failAt = 1;; failAt++) {
        const fault = { failAt, kind, lasting, seed: failAt };
        const disk = faultyDisk([root], fault);
        try {
          scenario(disk);
        } catch (thrown) {
          if (!(thrown instanceof SimulatedCrash)) throw thrown;
        }
        check(disk.afterKill(), fault);
        if (disk.calls() < failAt) break;
        assert(failAt < 2_000, "the scenario never ends");
      }
    }
  }
}

Deno.test("append() loses no acknowledged record, whichever call to the disk fails", () => {
  let acknowledged: number[] = [];
  underFaults((disk) => {
    acknowledged = [];
    const made = createSession(portsOf(disk), folder, baseline);
    if (!made.ok) return;
    for (let i = 0; i < 3; i++) if (made.value.append(userRecord(i)).ok) acknowledged.push(i);
    made.value.close();
  }, (disk, fault) => {
    const opened = openSession(portsOf(disk), folder);
    const why = JSON.stringify(fault);
    if (!opened.ok) {
      strictEqual(acknowledged.length, 0, `${why}: ${opened.detail}`);
      strictEqual(opened.code, "not-found", why);
      // Whatever a kill has left of a session that never was, the next message makes it.
      const again = createSession(portsOf(disk), folder, { ...baseline, system: "other" });
      assert(again.ok && again.value.append(userRecord(7)).ok, why);
      again.value.close();
      return strictEqual(openedAgain(disk), 1, why);
    }
    const there = opened.value.records.flatMap((r) => r.kind === "user" ? [r.time_unix_ms] : []);
    for (const i of acknowledged) assert(there.includes(i), why);
    deepStrictEqual(there, there.toSorted((a, b) => a - b), why);
    opened.value.close();
  });
});

/** How many messages the session's log has; -1 when it is refused. */
function openedAgain(disk: Disk): number {
  const opened = openSession(portsOf(disk), folder);
  if (!opened.ok) return -1;
  opened.value.close();
  return opened.value.records.filter((record) => record.kind === "user").length;
}

const said = { session, turn, message_id: null, is: "reply", code: null } as const;
const label = { class: "private", untrusted: false } as const;

Deno.test("outbox put() and ack() keep their word, whichever call to the disk fails", () => {
  let put: number[] = [];
  let acked: number[] = [];
  underFaults((disk) => {
    put = [];
    acked = [];
    const opened = openOutbox(portsOf(disk), `${root}/outbox.jsonl`);
    if (!opened.ok) return;
    for (let i = 0; i < 3; i++) {
      const done = opened.value.put({ ...said, label, text: `text ${i}` });
      if (done.ok) put.push(done.value.n);
    }
    if (put[0] !== undefined && opened.value.ack(put[0]).ok) acked.push(put[0]);
    opened.value.close();
  }, (disk, fault) => {
    const why = JSON.stringify(fault);
    const opened = openOutbox(portsOf(disk), `${root}/outbox.jsonl`);
    assert(opened.ok, why);
    const there = opened.value.after(-1).map((item) => item.n);
    for (const n of acked) strictEqual(there.includes(n), false, why);
    // The first may be gone by an acknowledgement that failed after it was written.
    for (const n of put.slice(1)) strictEqual(there.includes(n), true, why);
    const next = opened.value.put({ ...said, label, text: "next" });
    assert(next.ok && !put.includes(next.value.n), why);
    if (put.length > 0) assert(opened.value.hasFor(turn));
    opened.value.close();
  });
});

Deno.test("openOutbox() is rewritten when long, and keeps items, numbers and turns", () => {
  const disk = faultyDisk([root]);
  const path = `${root}/outbox.jsonl`;
  const first = openOutbox(portsOf(disk), path);
  assert(first.ok);
  for (let i = 0; i < 40; i++) {
    strictEqual(first.value.put({ ...said, label, text: "x".repeat(40_000) }).ok, true);
    if (i > 0) first.value.ack(i);
  }
  first.value.close();
  const before = disk.stat(path).size;
  const second = openOutbox(portsOf(disk), path);
  assert(second.ok && disk.stat(path).size < before / 10);
  deepStrictEqual(second.value.after(-1).map((item) => item.n), [0]);
  assert(second.value.hasFor(turn));
  second.value.close();
  const third = openOutbox(portsOf(disk), path);
  assert(third.ok);
  const next = third.value.put({ ...said, label, text: "y" });
  strictEqual(next.ok ? next.value.n : null, 40);
  third.value.close();
});

Deno.test("ack() keeps the outbox short in a process that never ends", () => {
  const disk = faultyDisk([root]);
  const path = `${root}/outbox.jsonl`;
  const outbox = openOutbox(portsOf(disk), path);
  assert(outbox.ok);
  for (let i = 0; i < 100; i++) {
    const put = outbox.value.put({ ...said, label, text: "x".repeat(40_000) });
    assert(put.ok && put.value.n === i && outbox.value.ack(i).ok);
    assert(disk.stat(path).size < 1_200_000);
  }
  assert(outbox.value.put({ ...said, label, text: "last" }).ok);
  outbox.value.close();
  const again = openOutbox(portsOf(disk), path);
  assert(again.ok && again.value.hasFor(turn));
  deepStrictEqual(again.value.after(-1).map((item) => [item.n, item.text]), [[100, "last"]]);
  again.value.close();
});

Deno.test("ack() loses no item, whichever call to the disk fails while it shortens the file", () => {
  let put: number[] = [];
  underFaults((disk) => {
    put = [];
    const fatal: string[] = [];
    const opened = openOutbox(portsOf(disk, fatal), `${root}/outbox.jsonl`);
    if (!opened.ok) return;
    const long = opened.value.put({ ...said, label, text: "x".repeat(1_048_576) });
    if (long.ok) opened.value.ack(long.value.n);
    // A process that must end puts nothing more.
    for (let i = 0; i < 2 && fatal.length === 0; i++) {
      const done = opened.value.put({ ...said, label, text: "short" });
      if (done.ok) put.push(done.value.n);
    }
    opened.value.close();
  }, (disk, fault) => {
    const opened = openOutbox(portsOf(disk), `${root}/outbox.jsonl`);
    assert(opened.ok, JSON.stringify(fault));
    const there = opened.value.after(-1).map((item) => item.n);
    for (const n of put) strictEqual(there.includes(n), true, JSON.stringify(fault));
    opened.value.close();
  });
});

Deno.test("openOutbox() refuses lines that are not its own", () => {
  for (const line of ["{}", '{"kind":"ack","n":-1}', '{"kind":"ack", "n":1}', "\0\0"]) {
    const disk = faultyDisk([root]);
    disk.plant(`${root}/outbox.jsonl`, new TextEncoder().encode(`${line}\n`));
    const opened = openOutbox(portsOf(disk), `${root}/outbox.jsonl`);
    strictEqual(opened.ok ? "ok" : opened.code, "session-damaged", line);
  }
});

Deno.test("durable() ends the process after a failed sync, and nothing more is acknowledged", () => {
  const disk = faultyDisk([root]);
  const fatal: string[] = [];
  const made = createSession(portsOf(disk, fatal), folder, baseline);
  assert(made.ok);
  const start = disk.calls();
  strictEqual(made.value.append(userRecord(0)).ok, true);
  for (let at = 1; at <= disk.calls() - start; at++) {
    const broken = faultyDisk([root]);
    const ends: string[] = [];
    const one = createSession(portsOf(broken, ends), folder, baseline);
    assert(one.ok);
    broken.setFault({ failAt: at, kind: "io", lasting: "for_good", seed: 1 });
    const done = one.value.append(userRecord(1));
    assert(!done.ok);
    if (done.code === "disk-failed") {
      strictEqual(ends.length, 1);
      strictEqual(one.value.append(userRecord(2)).ok, false);
    }
    one.value.close();
  }
  made.value.close();
});

Deno.test("artifact() gives exact bytes or names the damage", () => {
  const disk = faultyDisk([root]);
  const made = createSession(portsOf(disk), folder, baseline);
  assert(made.ok);
  const bytes = Uint8Array.of(0, 255, 10);
  const name = made.value.archive(bytes);
  assert(name.ok && made.value.archive(bytes).ok, "the same bytes again are no error");
  const read = made.value.artifact(name.value);
  deepStrictEqual(read.ok ? read.value : null, bytes);
  disk.plant(`${folder}/artifacts/${name.value}`, Uint8Array.of(1));
  const changed = made.value.artifact(name.value);
  strictEqual(changed.ok ? "ok" : changed.code, "session-damaged");
  made.value.close();
});

Deno.test("openSessionMarks() keeps marks over restarts and sweeps idle ones only when many", () => {
  const disk = faultyDisk([root]);
  const first = openSessionMarks(portsOf(disk), `${root}/open`);
  assert(first.ok);
  const ids = Array.from({ length: 40 }, (_, i) => SessionId.parse(`run-${ulid(i, random)}`));
  for (const id of ids) assert(first.value.mark(id).ok);
  const second = openSessionMarks(portsOf(disk), `${root}/open`);
  assert(second.ok);
  strictEqual(second.value.list().length, 40);
  second.value.sweep((id) => id === ids[0]);
  strictEqual(second.value.list().length, 32);
  assert(second.value.list().includes(ids[0] ?? session));
});

Deno.test("makeSlots() gives a slot to one at a time, those coming back first, oldest first", async () => {
  const slots = makeSlots();
  const order: string[] = [];
  const places: string[] = [];
  const want = async (
    name: string,
    as: "fresh" | "back",
    signal = new AbortController().signal,
  ) => {
    const release = await slots.acquire({
      slot: 0,
      as,
      signal,
      onPlace: (place) => void places.push(`${name}${place}`),
    });
    if (release !== null) order.push(name);
    return release;
  };
  const give = (release: Release | null) => release?.();
  const gone = new AbortController();
  const first = await want("a", "fresh");
  const rest = [
    want("b", "fresh"),
    want("c", "fresh", gone.signal),
    want("d", "back"),
    want("e", "back"),
  ];
  deepStrictEqual(places.slice(-4), ["d1", "e2", "b3", "c4"]);
  gone.abort();
  strictEqual(await rest[1], null);
  give(first);
  for (const at of [2, 3, 0]) give(await (rest[at] ?? null));
  deepStrictEqual(order, ["a", "d", "e", "b"]);
  assert(places.includes("b1") && places.includes("b3"), places.join());
  const other = await slots.acquire({
    slot: 1,
    as: "fresh",
    signal: gone.signal,
    onPlace: () => {},
  });
  strictEqual(other, null, "nobody gets a slot after leaving");
});

const user = { role: "user", content: "q" };
const said2 = { role: "assistant", content: "a" };
const called = (id: string, args = "{}") => ({
  role: "assistant",
  content: "",
  tool_calls: [{ id, type: "function", function: { name: "clock", arguments: args } }],
});
const answered = (id: string) => ({ role: "tool", tool_call_id: id, content: "noon" });

Deno.test("readExamples() refuses what could wedge every session", () => {
  const read = (value: unknown) => {
    const disk = faultyDisk([root]);
    const text = typeof value === "string" ? value : JSON.stringify(value);
    disk.plant(`${root}/examples.json`, new TextEncoder().encode(text));
    const examples = readExamples(disk, `${root}/examples.json`);
    return examples.ok ? "ok" : examples.code;
  };
  const wrong: readonly unknown[] = [
    "{",
    {},
    [said2],
    [user],
    [user, called("1")],
    [user, called("1"), said2],
    [user, called("1"), answered("2"), said2],
    [user, called("1", ""), answered("1"), said2],
    [user, called("1", "[]"), answered("1"), said2],
    [user, answered("1"), said2],
    [user, user, said2],
    [user, said2, said2],
    [user, { ...said2, reasoning_content: null }],
    [user, { ...said2, more: 1 }],
    [{ role: "system", content: "s" }, said2],
  ];
  for (const value of wrong) strictEqual(read(value), "config-invalid", JSON.stringify(value));
  for (const value of [[], [user, said2], [user, called("1"), answered("1"), said2]]) {
    strictEqual(read(value), "ok", JSON.stringify(value));
  }
  strictEqual(readExamples(faultyDisk([root]), `${root}/none.json`).ok, false);
});
