import assert from "node:assert/strict";
import type { Clock } from "../../shared/clock/clock.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { chatId } from "../../tests/doubles/session_logs.ts";
import { openIndex, type WorkerPort } from "./index_client.ts";
import type { Index } from "./index_messages.ts";
import type { Ask } from "./index_messages.ts";

const SESSION = SessionId.parse(chatId(1));

/** A clock that moves only when told to. */
function handClock(): Clock & { step(ms: number): Promise<void> } {
  let now = 0;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  return {
    nowUnixMs: () => now,
    monotonicMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const one = { at: now + ms, wake: resolve };
        sleepers.add(one);
        signal?.addEventListener("abort", () => {
          sleepers.delete(one);
          resolve();
        });
      }),
    step: async (ms) => {
      now += ms;
      for (const one of [...sleepers].filter((sleeper) => sleeper.at <= now)) {
        sleepers.delete(one);
        one.wake();
      }
      // Lets everything that woke run to its next wait.
      await new Promise((resolve) => setTimeout(resolve, 0));
    },
  };
}

function setUp() {
  const asked: Ask[] = [];
  let say: (data: unknown) => void = () => {};
  let fail: (reason: string) => void = () => {};
  let ended = false;
  const port: WorkerPort = {
    post: (message) => void asked.push(message),
    listen: (onMessage, onError) => {
      [say, fail] = [onMessage, onError];
    },
    end: () => void (ended = true),
  };
  const clock = handClock();
  const lost: string[] = [];
  const index = openIndex({
    port,
    clock,
    home: "/home",
    maxClass: "private",
    log: () => {},
    onLost: (reason) => void lost.push(reason),
    lateMs: 100,
    stuckMs: 1_000,
  });
  return {
    index,
    asked,
    clock,
    lost,
    say: (data: unknown) => say(data),
    fail: (reason: string) => fail(reason),
    isEnded: () => ended,
  };
}

async function ended(index: Index, clock: ReturnType<typeof handClock>): Promise<void> {
  const closing = index.close();
  await clock.step(4_000);
  await closing;
}

Deno.test("search() is answered in time though the Worker is stuck, and the role is told to end", async () => {
  const { index, clock, lost } = setUp();
  const found = index.search("x", 5);
  await clock.step(100);
  const result = await found;
  assert.ok(!result.ok && result.code === "recall-late");
  assert.deepEqual(lost, []);
  for (let i = 0; i < 5; i++) await clock.step(250);
  assert.equal(lost.length, 1);
  assert.match(lost[0] ?? "", /said nothing for/);
  await ended(index, clock);
});

Deno.test("a Worker that is slow but tells of its progress is not taken for stuck", async () => {
  const { index, clock, lost, say, asked } = setUp();
  const steps: number[] = [];
  const made = index.reindex((step) => void steps.push(step.logs));
  const id = asked.at(-1)?.id;
  for (let i = 0; i < 8; i++) {
    await clock.step(500);
    say({ kind: "progress", id, step: { logs: i, total_logs: 8, records: 0 } });
  }
  say({ kind: "done", id, value: { logs: 8, rows: 0, notes: 0, skipped: [] } });
  const counts = await made;
  assert.ok(counts.ok && counts.value.logs === 8);
  assert.equal(steps.length, 8);
  assert.deepEqual(lost, []);
  await ended(index, clock);
});

Deno.test("an answer outside the table is not believed", async () => {
  const { index, asked, say, lost, fail, isEnded } = setUp();
  const found = index.search("x", 5);
  say({ kind: "done", id: asked.at(-1)?.id, value: { hits: "all" } });
  const result = await found;
  assert.ok(!result.ok && result.code === "internal");
  say({ kind: "dance" });
  fail("it threw");
  assert.equal(lost.length, 2);
  const waiting = index.search("y", 5);
  const closing = index.close();
  const stopped = await waiting;
  assert.ok(!stopped.ok && stopped.code === "peer-down");
  assert.ok(!isEnded());
  say({ kind: "done", id: asked.at(-1)?.id, value: null });
  await closing;
  assert.ok(isEnded());
});

Deno.test("close() waits only so long for a Worker that is busy", async () => {
  const { index, clock, isEnded } = setUp();
  const closing = index.close();
  await clock.step(4_000);
  await closing;
  assert.ok(isEnded());
});

Deno.test("what is asked after close() is answered at once, so that no stop waits for it", async () => {
  const { index, asked, say } = setUp();
  const purged = index.update(SESSION).then(() => index.update(null));
  const closing = index.close();
  say({ kind: "done", id: asked.at(-1)?.id, value: null });
  await closing;
  await purged;
  assert.deepEqual(asked.map(({ kind }) => kind), ["open", "update", "close"]);
});
