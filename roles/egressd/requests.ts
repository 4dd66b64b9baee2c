// What egressd answers: it has no network yet, so every way out is refused by name.
import { err, ok } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { EGRESS_OPEN, EGRESS_STATUS } from "../../shared/wire/egress.ts";
import { on, type Route } from "../../shared/wire/listen.ts";

/** The table of broker-egress/egress. */
export function egressRoutes(startedUnixMs: number): Route[] {
  return [
    on(
      EGRESS_OPEN,
      (body) =>
        err(
          "egress-unavailable",
          `No way to ${body.origins.join(", ")} as this egressd carries no traffic`,
        ),
    ),
    on(EGRESS_STATUS, () =>
      ok({
        kind: "egress_status",
        body: {
          version: VERSION,
          started_unix_ms: startedUnixMs,
          summary: "Refuses every request: no traffic is carried yet",
          problems: [],
        },
      })),
  ];
}
