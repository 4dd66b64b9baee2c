// What egressd answers to brokerd.
import { ok } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { EGRESS_GO, EGRESS_OPEN, EGRESS_STATUS } from "../../shared/wire/egress.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import type { EgressCalls } from "./calls.ts";

/** The table of broker-egress/egress. */
export function egressRoutes(calls: EgressCalls, startedUnixMs: number): Route[] {
  return [
    on(EGRESS_OPEN, async (body, io) => {
      const ended = await calls.open(body, io);
      return ended.ok ? ok({ kind: "closed", body: { requests: ended.value } }) : ended;
    }),
    on(EGRESS_GO, ({ call, n, may_leave }) => {
      const gone = calls.go(call, n, may_leave ? "leave" : "drop");
      return gone.ok ? ok({ kind: "ok", body: {} }) : gone;
    }),
    on(EGRESS_STATUS, () =>
      ok({
        kind: "egress_status",
        body: {
          version: VERSION,
          started_unix_ms: startedUnixMs,
          summary: `Carries granted requests; ${calls.count()} calls are open`,
          problems: [],
        },
      })),
  ];
}
