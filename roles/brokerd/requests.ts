// The one table of what may be asked, and where: whatever is not in it is refused and recorded. The
// socket a request came in on is who asked. Every row is answered while the owner has stopped all
// effects, too: what would have one is denied on its way, what only looks or restricts goes on.
import { listen, type Listening, type Route } from "../../shared/wire/listen.ts";
import { servedBy, type SocketName } from "../../shared/wire/sockets.ts";
import type { House } from "./house.ts";
import { gatewayRoutes, memoryRoutes } from "./peer_requests.ts";
import { loopRoutes } from "./loop_requests.ts";
import { ownerRoutes } from "./owner_requests.ts";

type Row = { readonly kinds: readonly string[]; readonly routes: (house: House) => Route[] };
const row = (kinds: string, routes: Row["routes"]): Row => ({ kinds: kinds.split(/\s+/), routes });

export const TABLE: Partial<Record<SocketName, Row>> = {
  "loop-broker/broker": row(
    `session_open session_raise tool_catalog tool_request result_fetch result_ack call_cancel watch`,
    loopRoutes,
  ),
  "broker-gateway/broker": row("approval_answer stop", gatewayRoutes),
  "broker-memory/broker": row("session_state", memoryRoutes),
  "owner-broker/admin": row(
    `status approvals_list approval_show approval_answer stop resume audit_tail audit_verify
    audit_repair grants_check grants_explain secret_set`,
    ownerRoutes,
  ),
};

/** Listens on every socket; `pathOf` gives its absolute path. */
export function serve(house: House, pathOf: (name: SocketName) => string): Listening[] {
  return servedBy("brokerd").map((name) => {
    const { kinds, routes } = TABLE[name] ?? row("", () => []);
    return listen({
      path: pathOf(name),
      routes: routes(house).filter(({ kind }) => kinds.includes(kind))
        .map((route) => recorded(name, route, house)),
      log: (line) => house.refused(name, line),
    });
  });
}

const RECORDED = ["request-invalid", "frame-malformed", "frame-too-large", "session-refused"];

/** Records what a request's own schema or the sessions refuse. */
function recorded(name: SocketName, { kind, answer }: Route, house: House): Route {
  return {
    kind,
    answer: (frame, talk) =>
      answer(frame, {
        ...talk,
        send(value) {
          const { kind: said, body } = Object(value);
          const { code } = Object(body);
          if (said === "error" && RECORDED.includes(code)) house.refused(name, `${kind}: ${code}`);
          return talk.send(value);
        },
      }),
  };
}
