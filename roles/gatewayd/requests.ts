// What gatewayd answers brokerd and bxctl. Without a server it says the truth and takes nothing on:
// brokerd keeps its questions itself, so refusing them loses none; bxctl can answer them.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { APPROVAL_CLOSED, APPROVAL_POST, NOTICE_POST } from "../../shared/wire/broker_gateway.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { GATEWAY_STATUS } from "../../shared/wire/gateway_owner.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import type { Gateway } from "./gateway.ts";
import type { Store } from "./store.ts";

const idle = (): Result<never> =>
  err("channel-idle", "No channel is configured, so nothing can be posted");
const done = ok({ kind: "ok" as const, body: {} });

/** The table of broker-gateway/gateway; `gateway` is null without a server. */
export function brokerRoutes(gateway: Gateway | null): Route[] {
  if (gateway === null) {
    return [on(APPROVAL_POST, idle), on(APPROVAL_CLOSED, idle), on(NOTICE_POST, idle)];
  }
  const away = () => err("channel-unreachable", "The server has not been reached yet");
  return [
    on(APPROVAL_POST, ({ approval, session, expires_unix_ms }, io) => {
      const questions = gateway.questions();
      if (questions === null) return away();
      const text = decodeUtf8(io.upload);
      if (!text.ok) return err("request-invalid", text.detail);
      const lines = text.value.replace(/\n$/, "").split("\n");
      questions.ask({ approval, session, expiresUnixMs: expires_unix_ms, lines });
      return done;
    }),
    on(APPROVAL_CLOSED, ({ approval, outcome }) => {
      const questions = gateway.questions();
      if (questions === null) return away();
      questions.closed(approval, outcome);
      return done;
    }),
    on(NOTICE_POST, ({ id, text }) => gateway.notice(id, text) ? done : away()),
  ];
}

/** The table of owner-gateway/admin. `idleSummary` says why there is no channel. */
export function ownerRoutes(
  startedUnixMs: number,
  channel: { readonly gateway: Gateway; readonly store: Store } | null,
  idleSummary: string,
): Route[] {
  return [on(GATEWAY_STATUS, () =>
    ok({
      kind: "gateway_status",
      body: {
        version: VERSION,
        started_unix_ms: startedUnixMs,
        summary: channel === null ? idleSummary : channel.gateway.summary(),
        problems: channel === null ? [] : channel.gateway.health.problems(),
        channel: channel === null ? "idle" : channel.gateway.health.state(),
        queued: channel === null ? 0 : channel.store.waiting() + channel.store.unsent(),
      },
    }))];
}
