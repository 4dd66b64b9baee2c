// What gatewayd answers to bxctl on owner-gateway/admin.
import { z } from "zod";
import { exchange, message } from "./exchange.ts";
import { RoleStatus } from "./parts.ts";

export const GATEWAY_STATUS = exchange({
  request: message("status", {}),
  replies: [message("gateway_status", {
    ...RoleStatus,
    channel: z.enum(["idle", "connecting", "connected", "lost"]),
    queued: z.int().min(0),
  })],
});
