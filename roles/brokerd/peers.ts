// How brokerd asks the roles it may call: memoryd, gatewayd and egressd.
import { ok } from "../../shared/results/result.ts";
import { APPROVAL_CLOSED, APPROVAL_POST, NOTICE_POST } from "../../shared/wire/broker_gateway.ts";
import { callsFolder } from "../../shared/permissions/places.ts";
import { call } from "../../shared/wire/dial.ts";
import { EGRESS_STATUS } from "../../shared/wire/egress.ts";
import { MEMORY_CALL } from "../../shared/wire/memory.ts";
import type { SocketName } from "../../shared/wire/sockets.ts";
import type { HousePorts } from "./house.ts";
import { openWayOut } from "./way_out.ts";

const STATUS_MS = 500;

/** The ports to the other roles; `pathOf` gives a socket's absolute path. */
export function peers(
  home: string,
  pathOf: (name: SocketName) => string,
): Pick<HousePorts, "memory" | "egress" | "egressStatus" | "gateway"> {
  const gateway = pathOf("broker-gateway/gateway");
  const egress = pathOf("broker-egress/egress");
  return {
    async memory(request, args, { onOutput, signal }) {
      const options = { upload: args, onChunk: onOutput, signal };
      const reply = await call(pathOf("broker-memory/memory"), MEMORY_CALL, request, options);
      return reply.ok ? ok(reply.value.body) : reply;
    },
    egress: (asked, record) => openWayOut(egress, callsFolder(home), asked, record),
    async egressStatus() {
      const reply = await call(egress, EGRESS_STATUS, {}, { silenceMs: STATUS_MS });
      return reply.ok ? ok(reply.value.body.summary) : reply;
    },
    gateway: {
      post: ({ approval, plan, expires_unix_ms }, lines) => {
        const body = { approval, session: plan.session, expires_unix_ms };
        return call(gateway, APPROVAL_POST, body, { upload: lines });
      },
      closed: ({ approval, state }) => call(gateway, APPROVAL_CLOSED, { approval, outcome: state }),
      notice: (id, text) =>
        call(gateway, NOTICE_POST, { id: id.slice(0, 64), text: text.slice(0, 1_000) }),
    },
  };
}
