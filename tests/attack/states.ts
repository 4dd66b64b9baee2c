// brokerd under orders of events that nobody thought of: random requests, answers, grants, stops,
// clocks that jump, lost files, full disks, kills and restarts, held against a small model of what must
// never happen.
// The short form is a test; `deno task attack --states N` runs as many sequences as it is told.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { settled } from "../doubles/manual_clock.ts";
import { attempt } from "../../shared/disk/durable.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { ok as good } from "../../shared/results/result.ts";
import {
  DiskDied,
  grantToml,
  HOME,
  newCall,
  newSession,
  newTurn,
  outcomeOf,
  ROOT,
  type TestHouse,
  testHouse,
} from "../doubles/broker_house.ts";
import { type FaultyDisk, SimulatedCrash } from "../doubles/faulty_disk.ts";
import { equalLabel, join, type Label, SESSION_START } from "../../shared/labels/label.ts";
import type { RunPlan } from "../../roles/brokerd/runtime/plan.ts";
import type { House } from "../../roles/brokerd/house.ts";

type Op =
  | { readonly op: "request"; readonly call: number }
  | {
    readonly op: "answer";
    readonly which: number;
    readonly say: "approve" | "deny";
    readonly via: "owner" | "gateway";
  }
  | { readonly op: "end"; readonly how: "ok" | "tool_failed" }
  | { readonly op: "cancel" | "ack"; readonly call: number }
  | { readonly op: "wait" | "jump"; readonly ms: number }
  | { readonly op: "grant"; readonly text: string | null }
  | { readonly op: "full"; readonly at: number; readonly lasting: "once" | "for_good" }
  | { readonly op: "room" }
  | { readonly op: "raise" | "stop" | "resume" | "restart" | "lose" | "kill" };

const READ = grantToml("read_file", "auto");
const CALLS = 6;
const call = fc.nat(CALLS - 1);
const arbOp: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant("request" as const), call }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant("answer" as const),
      which: fc.nat(3),
      say: fc.constantFrom("approve" as const, "approve" as const, "deny" as const),
      via: fc.constantFrom("owner" as const, "gateway" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant("end" as const),
      how: fc.constantFrom("ok" as const, "tool_failed" as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constantFrom("cancel" as const, "ack" as const), call }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 30_000, 70_000, 900_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("jump" as const),
      ms: fc.constantFrom(-3_600_000, -1_000, 600_000, 86_400_000, 31 * 86_400_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("grant" as const),
      text: fc.constantFrom(
        null,
        READ,
        `${READ}# two\n`,
        READ.replace("untrusted = false", "untrusted = true"),
        "mode = ",
        READ.replace("auto", "deny").replace(/max_taint[^]*/, ""),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("full" as const),
      at: fc.integer({ min: 1, max: 60 }),
      lasting: fc.constantFrom("once" as const, "once" as const, "for_good" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("room" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constantFrom(
        "kill" as const,
        "raise" as const,
        "stop" as const,
        "resume" as const,
        "resume" as const,
        "restart" as const,
        "lose" as const,
      ),
    }),
  },
);

type World = {
  test: TestHouse;
  readonly ids: readonly {
    session: ReturnType<typeof newSession>;
    turn: ReturnType<typeof newTurn>;
    call: ReturnType<typeof newCall>;
    tool: string;
    args: string;
  }[];
  readonly running: Map<string, (how: "ok" | "tool_failed") => void>;
  readonly began: string[];
  /** Calls of the disk when a fault was last set; none is out before. */
  faultAt: number;
  house: House;
};

const OPTIONS = {
  grants: { "read.toml": READ, "list.toml": grantToml("list_dir", "ask") },
  config: { runtime: { concurrent: 2 } },
};

/** A house whose disk stands still from the moment on at which brokerd ends over it. */
function mortal(on?: FaultyDisk): TestHouse {
  const test = testHouse(OPTIONS, on);
  return Object.assign(test, {
    ports: Object.assign(test.ports, {
      fatal(detail: string) {
        test.disk.setFault({ failAt: 1, kind: "crash", lasting: "for_good", seed: 1 });
        throw new DiskDied(detail);
      },
    }),
  });
}

function world(): World {
  const test = mortal();
  const sessions = [newSession(), newSession()];
  const turn = newTurn();
  const ids = Array.from({ length: CALLS }, (_, i) => ({
    session: sessions[i % 2] ?? newSession(),
    turn,
    call: newCall(),
    tool: i % 3 === 0 ? "read_file" : "list_dir",
    args: JSON.stringify({ path: i % 3 === 0 ? `${ROOT}/a.txt` : ROOT }),
  }));
  const made: World = {
    test,
    ids,
    running: new Map(),
    began: [],
    faultAt: Infinity,
    house: test.open(),
  };
  attach(made);
  for (const session of sessions) {
    made.house.sessions.open({ session, kind: "chat", job: null, workspace: null });
  }
  return made;
}

/** Has the present house's runtime do as the sequence says. */
function attach(made: World): void {
  made.test.fake.script = (plan: RunPlan, io) => {
    ok(!made.house.stop.isStopped(), "an effect began while everything was stopped");
    made.began.push(plan.callId);
    return new Promise((resolve) => {
      const end = (status: "ok" | "tool_failed" | "killed") => {
        if (!made.running.delete(plan.callId)) return;
        if (status !== "killed") io.onOutput(encodeUtf8("x"));
        resolve(good(outcomeOf(plan, { status })));
      };
      made.running.set(plan.callId, end);
      io.signal.addEventListener("abort", () => end("killed"));
      if (io.signal.aborted) end("killed");
    });
  };
}

/** Another life on what the disk holds now, without any farewell; the clock goes on. */
function kill(made: World): void {
  const now = made.test.clock.nowUnixMs();
  made.running.clear();
  made.faultAt = Infinity;
  made.test = mortal(made.test.disk.afterKill());
  made.test.clock.setWall(now);
  attach(made);
  made.house = made.test.open();
}

const isDeath = (thrown: unknown) => thrown instanceof DiskDied || thrown instanceof SimulatedCrash;

/** Does one thing; a brokerd that ends over its disk begins anew. */
async function survive(made: World, act: () => Promise<void>): Promise<void> {
  const { test } = made;
  const deaths: unknown[] = [];
  const onDeath = (event: PromiseRejectionEvent) => {
    if (!isDeath(event.reason)) return;
    event.preventDefault();
    deaths.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", onDeath);
  try {
    await act();
  } catch (thrown) {
    if (!isDeath(thrown)) throw thrown;
    deaths.push(thrown);
  }
  if (test.disk.calls() > made.faultAt) await new Promise((resolve) => setTimeout(resolve, 0));
  globalThis.removeEventListener("unhandledrejection", onDeath);
  if (deaths.length > 0) kill(made);
}

async function apply(made: World, op: Op): Promise<void> {
  const { house, test, ids } = made;
  const one = ids["call" in op ? op.call : 0];
  ok(one !== undefined);
  if (op.op === "request") house.calls.request(one);
  else if (op.op === "cancel") house.calls.cancel(one.session, one.call);
  else if (op.op === "ack") house.calls.acknowledge(one.session, one.call);
  else if (op.op === "answer") {
    const asked = house.approvals.list("all");
    const chosen = asked[op.which % Math.max(1, asked.length)];
    const session = chosen?.plan.session ?? null;
    const said = house.approvals.answer(chosen?.code ?? "000000", op.say, op.via, session);
    const isLate = (chosen?.expires_unix_ms ?? 0) <= test.clock.nowUnixMs();
    ok(!isLate || !said.ok || said.value.outcome !== "approved", "a yes counted after its time");
  } else if (op.op === "end") made.running.values().next().value?.(op.how);
  else if (op.op === "wait") await test.clock.advance(op.ms);
  else if (op.op === "grant") {
    test.disk.plant("/home/bx/grants/read.toml", encodeUtf8(op.text ?? ""));
  } else if (op.op === "raise") {
    house.sessions.raise(one.session, { class: "private", untrusted: true }, "page");
  } else if (op.op === "stop") {
    house.halt("owner", "x", null);
    for (const [id, end] of made.running) ok(end === null, `${id} outlived a stop`);
  } else if (op.op === "resume") house.resume();
  else if (op.op === "kill") kill(made);
  else if (op.op === "room") test.disk.setFault(null);
  else if (op.op === "full") {
    made.faultAt = test.disk.calls();
    test.disk.setFault({ failAt: op.at, kind: "no_space", lasting: op.lasting, seed: op.at });
  } else if (op.op === "jump") test.clock.setWall(test.clock.nowUnixMs() + op.ms);
  else if (op.op === "restart" || op.op === "lose") {
    const closed = house.close();
    // What waits for room on the disk looks again every two seconds.
    await test.clock.advance(3_000);
    await closed;
    test.disk.setFault(null);
    const path = `${HOME}/broker/sessions/${one.session}.json`;
    if (op.op === "lose" && attempt(() => test.disk.lstat(path)).ok) test.disk.unlink(path);
    made.house = test.open();
  }
  await settled();
}

/** What the audit log alone must show, whatever happened. */
function judge(made: World): void {
  const allowed = new Set<string>();
  const started = new Set<string>();
  const ended = new Set<string>();
  const closed = new Set<string>();
  let isStopped = false;
  const labels = new Map<string, Label>();
  const covers = (high: Label | undefined, low: Label) =>
    high !== undefined && equalLabel(join(high, low), high);
  for (const record of made.house.audit.records()) {
    if (record.kind === "session" || record.kind === "raise") {
      labels.set(record.session, join(record.label, labels.get(record.session) ?? record.label));
    }
    if (record.kind === "decision" && record.label !== null) {
      const { label, session, call } = record;
      ok(covers(label, labels.get(session) ?? label), `${call} was decided by a label too low`);
    }
    if (record.kind === "stop") isStopped = true;
    if (record.kind === "resume") isStopped = false;
    if (record.kind === "decision" && record.verdict === "auto") allowed.add(record.call);
    if (record.kind === "approval" && record.event === "approved") allowed.add(record.call);
    if (record.kind === "approval" && record.event !== "approved") allowed.delete(record.call);
    if (record.kind === "approval" && !["asked", "folded"].includes(record.event)) {
      ok(!closed.has(record.approval), `${record.approval} was closed twice`);
      closed.add(record.approval);
    }
    if (record.kind === "start") {
      ok(allowed.has(record.call), `${record.call} began without a yes`);
      ok(!started.has(record.call), `${record.call} began twice`);
      ok(!isStopped, `${record.call} began while stopped`);
      started.add(record.call);
    }
    if (record.kind === "result") {
      ok(started.has(record.call) && !ended.has(record.call), `${record.call} ended oddly`);
      ended.add(record.call);
      const before = labels.get(record.session) ?? record.label;
      const now = join(before, record.label);
      ok(covers(record.session_label, now), `${record.call} lowered its session`);
      labels.set(record.session, now);
    }
  }
  ok(!isStopped || made.house.stop.isStopped(), "a recorded stop does not hold");
  strictEqual(new Set(made.began).size, made.began.length, "an effect began twice");
  for (const id of made.began) ok(started.has(id), `${id} ran and no start was recorded`);
  for (const { session } of made.ids) {
    const label = labels.get(session) ?? SESSION_START;
    const known = made.house.sessions.find(session)?.label;
    ok(known === undefined || covers(known, label), `${session} is lower than what it has seen`);
  }
}

/** Whatever was asked for ends: what runs, by itself, and what asks, by its time. */
async function comeToRest(made: World): Promise<void> {
  const { clock } = made.test;
  // However far it was set back.
  clock.setWall(clock.nowUnixMs() + 100 * 3_600_000);
  for (let i = 0; i < 2 * CALLS; i++) {
    await clock.advance(200_000);
    for (const end of made.running.values()) end("ok");
    await settled();
  }
  for (const { session, call } of made.ids) {
    const now = made.house.calls.fetch(session, call);
    ok(!now.ok || now.value.is === "ended", `${call} never ends`);
  }
}

const approve = (which: number): Op => ({ op: "answer", which, say: "approve", via: "owner" });
/** Sequences that once broke a promise; they run first. */
const FOUND: readonly Op[][] = [[
  { op: "request", call: 2 },
  { op: "raise" },
  { op: "request", call: 1 },
  { op: "request", call: 0 },
  ...[1, 0, 3, 0].map(approve),
  { op: "lose" },
  { op: "request", call: 0 },
]];

/** Runs `count` random sequences; how many effects began. Throws with the seed on a broken promise. */
export async function randomStates(count: number, onRun: () => void = () => {}): Promise<number> {
  let begun = 0;
  const property = fc.asyncProperty(
    fc.array(arbOp, { minLength: 4, maxLength: 30 }),
    async (ops) => {
      const made = world();
      try {
        for (const op of ops) await survive(made, () => apply(made, op));
        made.test.disk.setFault(null);
        await made.test.clock.advance(10_000);
        await comeToRest(made);
        judge(made);
        begun += made.began.length;
        await made.house.close();
        // What ran until now has had its end, and that may have raised them.
        const labels = labelsOf(made);
        made.house = made.test.open();
        deepStrictEqual(labelsOf(made), labels, "a label changed with a restart");
        onRun();
      } finally {
        await made.house.close();
      }
    },
  );
  await fc.assert(property, { numRuns: count, examples: FOUND.map((ops) => [ops]) });
  return begun;
}

const labelsOf = ({ house, ids }: World) =>
  ids.map((one) => house.sessions.find(one.session)?.label);
