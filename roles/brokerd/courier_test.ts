// Guards: the head of the audit log is told once a day, until it is taken, and a question until it is
// taken or closed.
import { deepStrictEqual, match, strictEqual } from "node:assert";
import { err, ok } from "../../shared/results/result.ts";
import { manualClock } from "../../tests/doubles/manual_clock.ts";
import { courierTo, type Gateway } from "./courier.ts";

const HOUR = 3_600_000;

Deno.test("courierTo() tells the head once a day, also on the day of a start, until it is taken", async () => {
  const clock = manualClock(Date.parse("2026-11-30T10:00:00Z"));
  const told: string[] = [];
  let isAway = true;
  const gateway: Gateway = {
    post: () => Promise.resolve(ok(null)),
    closed: () => Promise.resolve(ok(null)),
    notice: (id, text) => {
      if (isAway) return Promise.resolve(err("channel-unreachable", "away"));
      told.push(`${id}: ${text}`);
      return Promise.resolve(ok(null));
    },
  };
  const courier = courierTo(gateway, clock);
  let n = 0;
  const head = () => ({ n: n++, hash: "a".repeat(64) });
  courier.tellHeads({ head });
  await clock.advance(3 * HOUR);
  strictEqual(told.length, 0);
  isAway = false;
  await clock.advance(48 * HOUR);
  courier.close();
  deepStrictEqual(told.map((one) => one.slice(0, 15)), [
    "head-2026-11-30",
    "head-2026-12-01",
    "head-2026-12-02",
  ]);
  match(told[0] ?? "", /Audit log: record \d+, head a{64}$/);
});
