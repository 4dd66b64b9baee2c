// A call's way out through egressd, from before its container starts until after it has ended. Every
// request it makes is recorded here as it is told; what cannot be recorded ends the way.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { fromBase64 } from "../../shared/wire/codec.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { call } from "../../shared/wire/dial.ts";
import { EGRESS_GO, EGRESS_OPEN, type EgressRequest } from "../../shared/wire/egress.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";

/** The longest body that the audit log can hold. */
const MAX_PAYLOAD_BYTES = 3_000_000;

export type WayAsked = BodyOf<(typeof EGRESS_OPEN)["request"]>;
export type RequestLine = BodyOf<typeof EgressRequest>;
/** Records a request; `body` is null unless payloads are logged. */
export type RecordRequest = (line: RequestLine, body: Uint8Array | null) => Result<unknown>;

export type WayOut = {
  /** The folder to mount. */
  readonly folder: string;
  /** Nothing leaves any more. */
  close(): Promise<void>;
};

/**
 * Opens a way to exactly the origins asked for. Fails with `egress-unavailable` when egressd is down,
 * refuses, or names another folder than one of a call's in `calls`; then nothing is open.
 */
export async function openWayOut(
  socket: string,
  calls: string,
  asked: WayAsked,
  record: RecordRequest,
): Promise<Result<WayOut>> {
  const stop = new AbortController();
  const opened = Promise.withResolvers<Result<string>>();
  let pieces: Uint8Array[] = [];
  let held = 0;
  const take = async (line: RequestLine) => {
    const body = joinBytes(pieces);
    pieces = [];
    held = 0;
    const isTold = line.refused !== null || !asked.log_payload ||
      (sha256Hex(body) === line.sha256 && body.length <= MAX_PAYLOAD_BYTES);
    const said = isTold ? record(line, asked.log_payload ? body : null) : err("internal", "");
    if (!said.ok) return stop.abort();
    if (!asked.log_payload || line.refused !== null) return;
    await call(socket, EGRESS_GO, { call: asked.call, n: line.n, may_leave: true });
  };
  const over = call(socket, EGRESS_OPEN, asked, {
    signal: stop.signal,
    async onEvent(event) {
      if (event.kind === "opened") opened.resolve(ok(event.body.folder));
      else if (event.kind === "request") await take(event.body);
      else {
        const piece = fromBase64(event.body.base64);
        if (!piece.ok || (held += piece.value.length) > MAX_PAYLOAD_BYTES) return stop.abort();
        pieces.push(piece.value);
      }
    },
  }).then((ended) => {
    const why = ended.ok ? "egressd closed the way" : `${ended.code}: ${ended.detail}`;
    opened.resolve(err("egress-unavailable", why));
  });
  const folder = await opened.promise;
  const close = async () => {
    stop.abort();
    await over;
  };
  if (!folder.ok) return folder;
  const name = folder.value.slice(-12);
  const isOurs = folder.value === `${calls}/${name}` && /^[0-9a-f]{12}$/.test(name);
  if (isOurs) return ok({ folder: folder.value, close });
  await close();
  return err("egress-unavailable", "egressd names a folder that is no call's");
}
