// Guards: "no peer's number ends the process that shows it".
import { strictEqual, throws } from "node:assert";
import { isoTime } from "../clock/clock.ts";
import { UnixMs } from "./parts.ts";

Deno.test("UnixMs holds only times that a calendar can show", () => {
  const last = 8_640_000_000_000_000;
  throws(() => isoTime(last + 1), RangeError);
  strictEqual(isoTime(last), "+275760-09-13T00:00:00.000Z");
  for (const ok of [0, last - 1, last]) strictEqual(UnixMs.safeParse(ok).success, true);
  for (const bad of [-1, 0.5, last + 1, Number.MAX_SAFE_INTEGER]) {
    strictEqual(UnixMs.safeParse(bad).success, false, String(bad));
  }
});
