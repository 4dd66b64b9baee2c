// Talking to a house as a client does, with the moments that the benchmarks compare: when a message
// was sent, and when the first and the last piece of its answer were seen. `askDirectly` sends the
// same body to the model server itself.
import { epochFiles, readRecords, readStored } from "../../roles/loopd/session_files.ts";
import { requestBody } from "../../roles/loopd/request.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import type { House } from "../../launch/house.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { MessageId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import { LOOP_WATCH, OUTBOX_ACK, TURN_SUBMIT } from "../../shared/wire/loop.ts";
import { socketPath } from "../../shared/wire/sockets.ts";

/** Moments of one answer by `performance.now()`; `units` are those seen after the first piece. */
export interface Seen {
  readonly sentMs: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly units: number;
  /** What the server says its own writing took; null when the way does not show it. */
  readonly ownMs: number | null;
}

/** Pieces of an answer as they are seen. */
function pieces() {
  let firstMs = 0;
  let lastMs = 0;
  let units = 0;
  return {
    take(text: string): void {
      lastMs = performance.now();
      if (firstMs === 0) firstMs = lastMs;
      else units += text.length;
    },
    seen: (sentMs: number, ownMs: number | null = null): Seen => ({
      sentMs,
      firstMs,
      lastMs,
      units,
      ownMs,
    }),
  };
}

export type Conversation = ReturnType<typeof converse>;

/** One session of a house, watched on the owner's socket. */
export function converse(house: House) {
  const path = socketPath(house.home, "owner-loop/admin");
  const session = SessionId.parse(`chat-${ulid(Date.now(), systemRandom)}`);
  const gone = new AbortController();
  let now = pieces();
  let onDone = (_n: number) => {};
  const watching = call(path, LOOP_WATCH, { after: -1 }, {
    signal: gone.signal,
    onEvent: (event) => {
      if (event.kind === "turn_delta") now.take(event.body.text);
      if (event.kind === "outbox_item") onDone(event.body.n);
    },
  });
  return {
    session,
    async say(text: string): Promise<Seen> {
      now = pieces();
      const done = new Promise<number>((resolve) => onDone = resolve);
      const message_id = MessageId.parse(`b-${ulid(Date.now(), systemRandom)}`);
      const sentMs = performance.now();
      const body = { session, message_id, label: null };
      const sent = await call(path, TURN_SUBMIT, body, { upload: encodeUtf8(text) });
      if (!sent.ok) throw new Error(sent.detail);
      await call(path, OUTBOX_ACK, { n: await done });
      return now.seen(sentMs);
    },
    async close() {
      gone.abort();
      await watching;
    },
  };
}

const DELTA = /"delta":\{"(?:reasoning_)?content":("(?:[^"\\]|\\.)+")/g;

/** Sends a body to a model server and reads its whole stream. */
export async function askDirectly(server: string, body: string): Promise<Seen> {
  const sentMs = performance.now();
  const reply = await fetch(`${server}/v1/chat/completions`, { method: "POST", body });
  const now = pieces();
  let rest = "";
  let ownMs: number | null = null;
  for await (const text of reply.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const whole = (rest + text).lastIndexOf("\n");
    for (const [, piece = '""'] of (rest + text).slice(0, whole + 1).matchAll(DELTA)) {
      now.take(JSON.parse(piece));
    }
    const own = /"predicted_ms":([\d.]+)/.exec((rest + text).slice(0, whole + 1))?.[1];
    if (own !== undefined) ownMs = Number(own);
    rest = (rest + text).slice(whole + 1);
  }
  return now.seen(sentMs, ownMs);
}

/** What a house was asked last in a session and answered: the body it sent, made again from its files. */
export function lastExchange(home: string, session: SessionId) {
  const folder = `${home}/sessions/${session}`;
  const stored = readStored(denoDisk, folder, 0);
  const records = readRecords(denoDisk, epochFiles(folder, 0).log);
  if (!stored.ok || !records.ok) throw new Error("The session cannot be read");
  const at = records.value.findLastIndex((one) => one.kind === "user");
  const user = records.value[at];
  if (user?.kind !== "user") throw new Error("Nobody said anything");
  const target = { model: LoopdConfig.parse({}).inference.model, slot: 0 };
  const sent = requestBody(
    stored.value.baseline,
    records.value.slice(0, at + 1),
    user.turn,
    target,
  );
  const answer = records.value.slice(at).find((one) => one.kind === "assistant");
  const timings = answer?.kind === "assistant" ? answer.timings : null;
  return { body: new TextDecoder().decode(sent.bytes), ownMs: timings?.predicted_ms ?? null };
}
