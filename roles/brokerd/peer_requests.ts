// What gatewayd and memoryd may ask of brokerd.
import { SESSION_START } from "../../shared/labels/label.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { GATEWAY_ANSWER, GATEWAY_STOP } from "../../shared/wire/broker_gateway.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import { SESSION_STATE } from "../../shared/wire/memory.ts";
import type { Answered } from "./approvals.ts";
import type { House } from "./house.ts";

/** An answer's outcome as both the owner's socket and gatewayd are told it. */
export function answeredReply(answered: Result<Answered>) {
  if (!answered.ok) return answered;
  const { outcome, approval } = answered.value;
  const body = { outcome, approval: approval?.approval ?? null, tool: approval?.plan.tool ?? null };
  return ok({ kind: "approval_answered" as const, body });
}

export function gatewayRoutes(house: House): Route[] {
  return [
    on(
      GATEWAY_ANSWER,
      ({ code, answer, session, approval }) =>
        answeredReply(house.approvals.answer(code, answer, "gateway", session, approval)),
    ),
    on(GATEWAY_STOP, ({ why }) => {
      const halted = house.halt("gateway", why, null);
      if (!halted.ok) return halted;
      return ok({ kind: "stop_state", body: { is_stopped: true } });
    }),
  ];
}

export function memoryRoutes(house: House): Route[] {
  return [on(SESSION_STATE, ({ session }) => {
    const state = house.sessions.find(session);
    const body = { is_known: state !== null, label: state?.label ?? SESSION_START };
    return ok({ kind: "session_state_reply", body });
  })];
}
