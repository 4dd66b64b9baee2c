// What egressd answers to brokerd on broker-egress/egress.
import { z } from "zod";
import { CallId } from "../ids/ids.ts";
import { exchange, message } from "./exchange.ts";
import { RoleStatus } from "./parts.ts";

/** Opens one call's way to exactly these origins. */
export const EGRESS_OPEN = exchange({
  request: message(
    "open",
    z.strictObject({ call: CallId, origins: z.array(z.string().max(300)).min(1).max(32) }),
  ),
  replies: [message("opened", z.strictObject({ folder: z.string().max(200) }))],
});

export const EGRESS_STATUS = exchange({
  request: message("status", z.strictObject({})),
  replies: [message("egress_status", z.strictObject({ ...RoleStatus }))],
});
