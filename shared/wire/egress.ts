// What egressd answers to brokerd on broker-egress/egress.
import { z } from "zod";
import { CallId, Sha256 } from "../ids/ids.ts";
import { exchange, message } from "./exchange.ts";
import { MAX_CHUNK_BYTES } from "./limits.ts";
import { RoleStatus } from "./parts.ts";

const Origin = z.string().max(300);
const N = z.int().min(0);

/** The call's folder is there: it may be mounted. Sent once, before anything else. */
export const EgressOpened = message("opened", { folder: z.string().max(200) });

/** A piece of the body of request `n`, in order, before its `request`; only with `log_payload`. */
export const EgressBody = message("request_body", {
  n: N,
  base64: z.string().max(Math.ceil(MAX_CHUNK_BYTES / 3) * 4),
});

/** One request of the call's program, before a byte of it leaves. `refused` says why it does not. */
export const EgressRequest = message("request", {
  n: N,
  method: z.string().max(32),
  url: z.string().max(8_192),
  bytes: z.int().min(0),
  sha256: Sha256,
  refused: z.string().max(64).nullable(),
});

/**
 * Opens one call's way to exactly these origins, for as long as the connection stays up. `inject` is
 * set last on every request. With `log_payload` each request waits for its `egress_go`.
 */
export const EGRESS_OPEN = exchange({
  request: message("open", {
    call: CallId,
    origins: z.array(Origin).min(1).max(32),
    inject: z.strictObject({
      header: z.string().regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/),
      value: z.string().min(1).max(16_384),
    }).nullable(),
    log_payload: z.boolean(),
  }),
  events: [EgressOpened, EgressBody, EgressRequest],
  replies: [message("closed", { requests: N })],
});

/** Lets the request `n` of a call leave, or drops it. */
export const EGRESS_GO = exchange({
  request: message("egress_go", { call: CallId, n: N, may_leave: z.boolean() }),
  replies: [message("ok", {})],
});

export const EGRESS_STATUS = exchange({
  request: message("status", {}),
  replies: [message("egress_status", { ...RoleStatus })],
});
