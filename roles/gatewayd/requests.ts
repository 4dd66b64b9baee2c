// What gatewayd answers while no server is configured: the truth, and nothing is taken on.
// brokerd keeps its questions itself, so refusing them here loses none; bxctl can answer them.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { APPROVAL_CLOSED, APPROVAL_POST, NOTICE_POST } from "../../shared/wire/broker_gateway.ts";
import { GATEWAY_STATUS } from "../../shared/wire/gateway_owner.ts";
import { on, type Route } from "../../shared/wire/listen.ts";

const idle = (): Result<never> =>
  err("channel-idle", "No channel is configured, so nothing can be posted");

/** The table of broker-gateway/gateway. */
export function brokerRoutes(): Route[] {
  return [on(APPROVAL_POST, idle), on(APPROVAL_CLOSED, idle), on(NOTICE_POST, idle)];
}

/** The table of owner-gateway/admin. `summary` says why the channel is idle. */
export function ownerRoutes(startedUnixMs: number, summary: string): Route[] {
  return [on(GATEWAY_STATUS, () =>
    ok({
      kind: "gateway_status",
      body: {
        version: VERSION,
        started_unix_ms: startedUnixMs,
        summary,
        problems: [],
        channel: "idle",
        queued: 0,
      },
    }))];
}
