// What loopd may ask of brokerd. It has no authority: every call is decided here, and nothing it says
// about a session is believed beyond raising its label.
import { attempt } from "../../shared/disk/durable.ts";
import { SESSION_START } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import type { BodyOf, Said } from "../../shared/wire/exchange.ts";
import { type Io, on, type Route } from "../../shared/wire/listen.ts";
import {
  BROKER_WATCH,
  CALL_CANCEL,
  type Pending,
  RESULT_ACK,
  RESULT_FETCH,
  SESSION_OPEN,
  SESSION_RAISE,
  TOOL_CATALOG,
  TOOL_REQUEST,
  type ToolResponse,
} from "../../shared/wire/loop_broker.ts";
import type { StoredResult } from "./call_results.ts";
import type { Answer } from "./call_state.ts";
import type { House } from "./house.ts";

type Place = Pick<BodyOf<typeof TOOL_REQUEST["request"]>, "session" | "call">;
type Reply = Said<typeof ToolResponse | typeof Pending>;
const done = ok({ kind: "ok" as const, body: {} });

export function loopRoutes(house: House): Route[] {
  const { calls, sessions, tools, watch } = house;
  return [
    on(SESSION_OPEN, (body) => {
      const opened = sessions.open(body);
      if (!opened.ok) return opened;
      const { session, label } = opened.value;
      const catalogs = [...tools.digests()];
      return ok({ kind: "session_opened", body: { session, label, catalogs } });
    }),
    on(SESSION_RAISE, ({ session, label, why }) => {
      const raised = sessions.raise(session, label, why);
      if (!raised.ok) return raised;
      return ok({ kind: "session_raised", body: { session, label: raised.value.label } });
    }),
    on(TOOL_CATALOG, async ({ digest }, io) => {
      const bytes = tools.bytes(digest);
      if (bytes === null) return err("not-found", `No catalogue ${digest} is in force`);
      await io.chunk(bytes);
      return ok({ kind: "tool_catalog_end", body: { digest } });
    }),
    on(TOOL_REQUEST, async ({ session, turn, call, tool, witness }, io) => {
      const seen = house.checkWitness(witness);
      if (!seen.ok) return seen;
      const args = decodeUtf8(io.upload);
      if (!args.ok) return args;
      const answer = calls.request({ session, turn, call, tool, args: args.value });
      if (!answer.ok) return answer;
      const soon = await calls.soon(answer.value, session, call);
      return await reply(house, { session, call }, soon, io);
    }),
    on(RESULT_FETCH, async ({ session, call }, io) => {
      const answer = calls.fetch(session, call);
      return answer.ok ? await reply(house, { session, call }, answer.value, io) : answer;
    }),
    on(RESULT_ACK, ({ session, call }) => {
      const acked = calls.acknowledge(session, call);
      return acked.ok ? done : acked;
    }),
    on(CALL_CANCEL, ({ session, call }) => {
      const cancelled = calls.cancel(session, call);
      return cancelled.ok ? done : cancelled;
    }),
    on(BROKER_WATCH, async (from, io) => {
      const why = await watch.follow(from, (event) => io.event(event), io.signal);
      return ok({ kind: "watch_end", body: { why } });
    }),
  ];
}

async function reply(
  house: House,
  place: Place,
  answer: Answer,
  io: Pick<Io<never>, "chunk">,
): Promise<Result<Reply>> {
  if (answer.is === "pending") {
    const { state, approval, expiresUnixMs: expires_unix_ms } = answer.pending;
    return ok({ kind: "pending", body: { ...place, state, approval, expires_unix_ms } });
  }
  if (answer.is === "run_local") return ok(response(house, answer.result, "run_local"));
  const { result } = answer;
  if (result.is_acked) return err("not-found", `The result of ${result.call} was acknowledged`);
  const pieces = house.results.output(result);
  let sent = 0;
  for (;;) {
    const piece = attempt(() => pieces.next());
    if (!piece.ok) return piece;
    if (piece.value.done === true) break;
    if (!await io.chunk(piece.value.value)) return err("frame-closed", "The caller is gone");
    sent += piece.value.value.length;
  }
  if (sent !== result.bytes) return err("disk-error", `The output of ${result.call} is not whole`);
  return ok(response(house, result, result.outcome));
}

function response(
  house: House,
  result: StoredResult,
  outcome: StoredResult["outcome"] | "run_local",
): Said<typeof ToolResponse> {
  const session_label = house.sessions.find(result.session)?.label ?? SESSION_START;
  const { v: _v, turn: _turn, tool: _tool, is_acked: _acked, ...rest } = result;
  return {
    kind: "tool_response",
    body: { ...rest, outcome, session_label, audit: house.audit.head() },
  };
}
