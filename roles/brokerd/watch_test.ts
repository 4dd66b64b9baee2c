// Guards what loopd is told: in order, once, and never a silent gap.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { newCall, newSession } from "../../tests/doubles/broker_house.ts";
import { type WatchEvent, watchOf } from "./watch.ts";

function follower(watch: ReturnType<typeof watchOf>, from: { boot: string | null; after: number }) {
  const seen: WatchEvent[] = [];
  const stop = new AbortController();
  const ended = watch.follow(from, (event) => {
    seen.push(event);
    return Promise.resolve(true);
  }, stop.signal);
  return { seen, stop: () => stop.abort(), ended };
}

const place = { session: newSession(), call: newCall() };
const seqs = (seen: readonly WatchEvent[]) => seen.map((event) => event.body.seq);

Deno.test("follow() what happened before in the same life is caught up, in order and without a gap", async () => {
  const watch = watchOf("b1");
  for (let i = 0; i < 5; i++) watch.ready(place);
  const one = follower(watch, { boot: "b1", after: 2 });
  await settled();
  watch.started(place);
  await settled();
  deepStrictEqual(seqs(one.seen), [3, 3, 4, 5]);
  const [start] = one.seen;
  ok(start?.kind === "watch_start" && !start.body.has_gap);
  one.stop();
  strictEqual(await one.ended, "the caller left");
});

Deno.test("follow() another life, or events that were dropped, are told as a gap", async () => {
  const watch = watchOf("b2");
  for (let i = 0; i < 1_500; i++) watch.ready(place);
  for (const from of [{ boot: "b1", after: 3 }, { boot: "b2", after: 3 }]) {
    const one = follower(watch, from);
    await settled();
    const [start] = one.seen;
    ok(start?.kind === "watch_start" && start.body.has_gap, JSON.stringify(from));
    one.stop();
    await one.ended;
  }
  const fresh = follower(watch, { boot: null, after: -1 });
  await settled();
  strictEqual(fresh.seen.length, 1);
  fresh.stop();
  await fresh.ended;
});

Deno.test("follow() a second watch takes over and ends the first", async () => {
  const watch = watchOf("b1");
  const one = follower(watch, { boot: null, after: -1 });
  await settled();
  const two = follower(watch, { boot: "b1", after: -1 });
  strictEqual(await one.ended, "another watch took over");
  watch.ready(place);
  await settled();
  deepStrictEqual(seqs(two.seen), [0, 0]);
  two.stop();
  await two.ended;
});
