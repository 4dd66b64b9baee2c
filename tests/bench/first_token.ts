// Time to the first word: through bxctl's socket, loopd and inferproxy, beside the same request sent
// to the same server directly. What the server itself takes, from the whole request to the first
// word it has, depends on how much of the prompt is new and is left out of both.
import { type House } from "../../launch/house.ts";
import { givenModel } from "../../launch/served_model.ts";
import { MessageId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import { LOOP_WATCH, OUTBOX_ACK, TURN_SUBMIT } from "../../shared/wire/loop.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import { e2eHouse } from "../doubles/e2e_house.ts";
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { rehearsal } from "../doubles/llama/rehearsal.ts";
import { inTurn, line, ms, spread } from "./rounds.ts";

const ROUNDS = 40;

export async function benchFirstToken(): Promise<void> {
  let hasWordAt = 0;
  const llama = await startLlamaDouble({
    script: (request, state) => {
      hasWordAt = performance.now();
      return rehearsal(request, state);
    },
  });
  const withoutServer = async (act: () => Promise<number>): Promise<number> => {
    // What a turn leaves to be done after its answer, such as indexing, is over before the next one.
    await new Promise((resolve) => setTimeout(resolve, 150));
    const total = await act();
    const asked = llama.record.findLast((one) => one.path.includes("/chat/completions"));
    return total - (hasWordAt - (asked?.arrivedMs ?? hasWordAt));
  };
  const server = `http://127.0.0.1:${llama.port}`;
  {
    await using rig = await e2eHouse({ model: givenModel(server) });
    const watcher = watchFirstWords(rig.house);
    const session = SessionId.parse(`chat-${ulid(Date.now(), systemRandom)}`);
    await watcher.turn(session);
    const body = lastChatBody(llama.record);
    const results = await inTurn({
      direct: () => withoutServer(() => direct(server, body)),
      house: () => withoutServer(() => watcher.turn(session)),
    }, ROUNDS);
    const through = spread(results.get("house") ?? []);
    const bare = spread(results.get("direct") ?? []);
    line("first word through the house", `p50 ${ms(through.p50)}, p95 ${ms(through.p95)}`);
    line("  the same request to the server itself", `p50 ${ms(bare.p50)}, p95 ${ms(bare.p95)}`);
    line(
      "  added at p50, at p95",
      `${ms(through.p50 - bare.p50)}, ${ms(through.p95 - bare.p95)}`,
      "limit 10 ms at p95",
    );
    await watcher.close();
  }
  await llama.stop();
}

function lastChatBody(
  record: readonly { readonly path: string; readonly bodyText: string }[],
): string {
  const found = record.findLast((one) => one.path.includes("/chat/completions"));
  if (found === undefined) throw new Error("The server was never asked");
  return found.bodyText;
}

async function direct(server: string, body: string): Promise<number> {
  const from = performance.now();
  const reply = await fetch(`${server}/v1/chat/completions`, { method: "POST", body });
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  let first = 0;
  for (;;) {
    const next = await reader?.read();
    if (next === undefined || next.done) break;
    seen += next.value;
    if (first === 0 && /"content":"[^"]/.test(seen)) first = performance.now() - from;
  }
  return first;
}

/** Submits turns and resolves with the time to the first word of each answer. */
function watchFirstWords(house: House) {
  const path = socketPath(house.home, "owner-loop/admin");
  const gone = new AbortController();
  let onFirst = (_at: number) => {};
  let onDone = (_n: number) => {};
  const watching = call(path, LOOP_WATCH, { after: -1 }, {
    signal: gone.signal,
    onEvent: (event) => {
      if (event.kind === "turn_delta" && event.body.channel === "answer") {
        onFirst(performance.now());
      }
      if (event.kind === "outbox_item") onDone(event.body.n);
    },
  });
  return {
    async turn(session: SessionId): Promise<number> {
      const first = new Promise<number>((resolve) => onFirst = resolve);
      const done = new Promise<number>((resolve) => onDone = resolve);
      const from = performance.now();
      const message_id = MessageId.parse(`b-${ulid(Date.now(), systemRandom)}`);
      const body = { session, message_id, label: null };
      const sent = await call(path, TURN_SUBMIT, body, { upload: encodeUtf8("hello") });
      if (!sent.ok) throw new Error(sent.detail);
      const at = await first;
      await call(path, OUTBOX_ACK, { n: await done });
      return at - from;
    },
    async close() {
      gone.abort();
      await watching;
    },
  };
}
