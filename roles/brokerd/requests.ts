// The one table of what may be asked: socket, kind, and the states in which it is answered. Whatever
// is not in it is refused and recorded. The socket a request came in on is who asked.
import { err, type Result } from "../../shared/results/result.ts";
import {
  listen,
  type Listening,
  type Route,
  sendError,
  type Talk,
} from "../../shared/wire/listen.ts";
import type { SocketName } from "../../shared/wire/sockets.ts";
import type { House } from "./house.ts";
import { gatewayRoutes, memoryRoutes } from "./peer_requests.ts";
import { loopRoutes } from "./loop_requests.ts";
import { ownerRoutes } from "./owner_requests.ts";

/** `stopped`: the owner has stopped all effects. What may only look, or only restrict, goes on. */
export type State = "serving" | "stopped";
const ALWAYS: readonly State[] = ["serving", "stopped"];

export const TABLE: Partial<Record<SocketName, Readonly<Record<string, readonly State[]>>>> = {
  "loop-broker/broker": {
    session_open: ALWAYS,
    session_raise: ALWAYS,
    tool_catalog: ALWAYS,
    // While stopped it is answered too, with a denial.
    tool_request: ALWAYS,
    result_fetch: ALWAYS,
    result_ack: ALWAYS,
    call_cancel: ALWAYS,
    watch: ALWAYS,
  },
  "broker-gateway/broker": { approval_answer: ALWAYS, stop: ALWAYS },
  "broker-memory/broker": { session_state: ALWAYS },
  "owner-broker/admin": {
    status: ALWAYS,
    approvals_list: ALWAYS,
    approval_show: ALWAYS,
    approval_answer: ALWAYS,
    stop: ALWAYS,
    resume: ALWAYS,
    audit_tail: ALWAYS,
    audit_verify: ALWAYS,
    audit_repair: ALWAYS,
    grants_check: ALWAYS,
    grants_explain: ALWAYS,
    secret_set: ALWAYS,
  },
};

const ROUTES = {
  "loop-broker/broker": loopRoutes,
  "broker-gateway/broker": gatewayRoutes,
  "broker-memory/broker": memoryRoutes,
  "owner-broker/admin": ownerRoutes,
} as const satisfies Partial<Record<SocketName, (house: House) => Route[]>>;

/** The four sockets brokerd serves, by name. */
export const SERVED = [
  "loop-broker/broker",
  "broker-gateway/broker",
  "broker-memory/broker",
  "owner-broker/admin",
] as const;

/** Listens on every socket; `pathOf` gives its absolute path. */
export function serve(house: House, pathOf: (name: SocketName) => string): Listening[] {
  return SERVED.map((name) =>
    listen({
      path: pathOf(name),
      routes: ROUTES[name](house).map((route) => guarded(name, route, house)),
      log: (line) => house.refused(name, line),
    })
  );
}

/** Admits a request only in the states its row names, and records what its own schema refuses. */
export function guarded(name: SocketName, route: Route, house: House): Route {
  const states = TABLE[name]?.[route.kind] ?? [];
  return {
    kind: route.kind,
    async answer(frame, talk) {
      const state = house.stop.isStopped() ? "stopped" : "serving";
      if (!states.includes(state)) {
        house.refused(name, `${route.kind} while ${state}`);
        return await sendError(
          talk,
          err("kind-unknown", `No request ${route.kind} while ${state}`),
        );
      }
      await route.answer(frame, recording(name, route.kind, talk, house));
    },
  };
}

function recording(name: SocketName, kind: string, talk: Talk, house: House): Talk {
  const send = (value: unknown): Promise<Result<null>> => {
    const code = refusedCode(value);
    if (code !== null) house.refused(name, `${kind}: ${code}`);
    return talk.send(value);
  };
  return { ...talk, send };
}

const RECORDED = ["request-invalid", "frame-malformed", "frame-too-large", "session-refused"];

function refusedCode(value: unknown): string | null {
  const { kind, body } = Object(value);
  const { code } = Object(body);
  return kind === "error" && RECORDED.includes(code) ? code : null;
}
