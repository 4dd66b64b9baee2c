// How gatewayd asks loopd and brokerd. Each call may fail; who calls decides what that means.
import type { MessageId, SessionId } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { GATEWAY_ANSWER, GATEWAY_STOP } from "../../shared/wire/broker_gateway.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { decodeLossy, encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import type { BodyOf, Said } from "../../shared/wire/exchange.ts";
import {
  LOOP_STATUS,
  LOOP_WATCH,
  OUTBOX_ACK,
  OUTBOX_FETCH,
  type OutboxItem,
  TURN_CANCEL,
  TURN_SUBMIT,
  type TurnDelta,
  type TurnState,
} from "../../shared/wire/loop.ts";
import type { SocketName } from "../../shared/wire/sockets.ts";

export type LoopEvent = Said<typeof TurnState> | Said<typeof TurnDelta> | Said<typeof OutboxItem>;

export interface Submitted {
  readonly session: SessionId;
  readonly messageId: MessageId;
  readonly text: string;
  readonly label: Label | null;
}

export type Peers = ReturnType<typeof makePeers>;

export function makePeers(pathOf: (name: SocketName) => string) {
  const loop = pathOf("gateway-loop/loop");
  const broker = pathOf("broker-gateway/broker");
  return {
    submit({ session, messageId, text, label }: Submitted) {
      const body = { session, message_id: messageId, label };
      return call(loop, TURN_SUBMIT, body, { upload: encodeUtf8(text) });
    },
    cancel: (session: SessionId) => call(loop, TURN_CANCEL, { session }),
    watch: (onEvent: (event: LoopEvent) => void, signal: AbortSignal) =>
      call(loop, LOOP_WATCH, { after: -1 }, { onEvent, signal }),
    async fetch(n: number): Promise<Result<string>> {
      const pieces: Uint8Array[] = [];
      const onChunk = (bytes: Uint8Array) => void pieces.push(bytes);
      const reply = await call(loop, OUTBOX_FETCH, { n }, { onChunk });
      return reply.ok ? ok(decodeLossy(joinBytes(pieces))) : reply;
    },
    ack: (n: number) => call(loop, OUTBOX_ACK, { n }),
    status: () => call(loop, LOOP_STATUS, {}, { silenceMs: 2_000 }),
    answer: (body: BodyOf<typeof GATEWAY_ANSWER["request"]>) => call(broker, GATEWAY_ANSWER, body),
    stop: (why: string) => call(broker, GATEWAY_STOP, { why }),
  };
}
