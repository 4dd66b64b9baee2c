// The stand-in of loopd, over loopd's own socket: for a gatewayd that is a process of its own.
import { ok } from "../../shared/results/result.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { listen, type Listening, on } from "../../shared/wire/listen.ts";
import {
  LOOP_WATCH,
  OUTBOX_ACK,
  OUTBOX_FETCH,
  TURN_CANCEL,
  TURN_SUBMIT,
} from "../../shared/wire/loop.ts";
import type { LoopDouble } from "./gatewayd.ts";

/** Serves the double's turns and outbox at `path`. */
export function serveLoop(path: string, { peers, item }: LoopDouble): Listening {
  return listen({
    path,
    log: () => {},
    routes: [
      on(TURN_SUBMIT, async ({ session, message_id, label }, io) => {
        const text = decodeUtf8(io.upload);
        if (!text.ok) return text;
        return await peers.submit({ session, messageId: message_id, text: text.value, label });
      }),
      on(TURN_CANCEL, async ({ session }) => await peers.cancel(session)),
      on(LOOP_WATCH, async (_, io) => {
        let last = Promise.resolve(true);
        return await peers.watch((event) => {
          last = last.then(() => io.event(event));
        }, io.signal);
      }),
      on(OUTBOX_FETCH, async ({ n }, io) => {
        const text = await peers.fetch(n);
        if (!text.ok) return text;
        await io.chunk(encodeUtf8(text.value));
        return ok({ kind: "outbox_item", body: item(n) });
      }),
      on(OUTBOX_ACK, async ({ n }) => await peers.ack(n)),
    ],
  });
}
