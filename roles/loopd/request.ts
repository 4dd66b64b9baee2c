// A request body as a pure function of an epoch's baseline and log: the same files give the same
// bytes, and a later request of the session begins with the messages of every earlier one.
//
// 1. Turns appear one after another, each with all its records, whenever they were written: a message
//    that arrives in the middle of another turn comes after that turn.
// 2. Arguments in the body are always the text of a JSON object; thoughts and empty lists that the
//    server refuses are left out.
// 3. Nothing that varies is in the body besides its newest messages.
import { createHash } from "node:crypto";
import type { TurnId } from "../../shared/ids/ids.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { Baseline, SessionRecord } from "../../shared/session_log/records.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";

/** What the configuration adds; the same for every request of a session. */
export interface Target {
  readonly model: string;
  readonly slot: number;
}

export interface RequestBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The JSON of each message, in order. */
  readonly messages: readonly string[];
}

/** Turns of an epoch in the order in which they run: that of their user records. */
export function turnOrder(records: readonly SessionRecord[]): TurnId[] {
  return records.flatMap((record) => record.kind === "user" ? [record.turn] : []);
}

/** Records of one turn, in the order in which they were written. */
export function recordsOf(records: readonly SessionRecord[], turn: TurnId): SessionRecord[] {
  return records.filter((record) => "turn" in record && record.turn === turn);
}

/** The JSON of an answer of the model. */
export function assistantText({ content, reasoning_content, tool_calls }: {
  readonly content: string;
  readonly reasoning_content: string;
  readonly tool_calls: readonly { readonly [K in "call" | "name" | "arguments"]: string }[];
}): string {
  return canonicalText({
    role: "assistant",
    content,
    ...(reasoning_content === "" ? {} : { reasoning_content }),
    ...(tool_calls.length === 0 ? {} : {
      tool_calls: tool_calls.map((call) => ({
        id: call.call,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
  });
}

/** The JSON of what a call returned. */
export function resultText(call: string, content: string): string {
  return canonicalText({ role: "tool", tool_call_id: call, content });
}

/** The JSON of the messages that every request of an epoch begins with. */
export function firstMessages(baseline: Baseline): string[] {
  return [{ role: "system", content: baseline.system }, ...baseline.examples].map(canonicalText);
}

function messageOf(record: SessionRecord): string[] {
  if (record.kind === "user") return [canonicalText({ role: "user", content: record.content })];
  if (record.kind === "assistant") return [assistantText(record)];
  return record.kind === "tool_result" ? [resultText(record.call, record.content)] : [];
}

/** The JSON of every message up to and including `turn`. */
export function messagesFor(
  baseline: Baseline,
  records: readonly SessionRecord[],
  turn: TurnId,
): string[] {
  const order = turnOrder(records);
  const grouped = new Map<TurnId, string[]>(
    order.slice(0, order.indexOf(turn) + 1).map((id) => [id, []]),
  );
  for (const record of records) {
    if ("turn" in record && record.turn !== null) {
      grouped.get(record.turn)?.push(...messageOf(record));
    }
  }
  return [...firstMessages(baseline), ...[...grouped.values()].flat()];
}

/** The body that asks the model to go on with `turn`. */
export function requestBody(
  baseline: Baseline,
  records: readonly SessionRecord[],
  turn: TurnId,
  target: Target,
): RequestBody {
  return bodyOf(baseline, messagesFor(baseline, records, turn), target);
}

/** A body of given messages under a baseline's tools and sampling. */
export function bodyOf(
  baseline: Baseline,
  messages: readonly string[],
  target: Target,
): RequestBody {
  const rest = canonicalText({
    tools: baseline.tools,
    ...baseline.sampling,
    stream: true,
    return_progress: true,
    timings_per_token: true,
    stream_options: { include_usage: true },
    cache_prompt: true,
    id_slot: target.slot,
    reasoning_control: true,
  });
  const model = canonicalText(target.model);
  const text = `{"model":${model},"messages":[${messages.join(",")}],${rest.slice(1)}`;
  return { bytes: encodeUtf8(text), messages };
}

export interface SentPrefix {
  readonly count: number;
  readonly hash: string;
}

/** The fingerprint of the first `count` messages. */
function fingerprint(messages: readonly string[], count: number): string {
  const hash = createHash("sha256");
  for (const message of messages.slice(0, count)) hash.update(`${message}\n`);
  return hash.digest("hex");
}

/**
 * What was sent, for the next comparison. Fails with `prefix-broken` when `messages` do not begin
 * with everything that was sent before.
 */
export function extendPrefix(
  last: SentPrefix | undefined,
  messages: readonly string[],
): Result<SentPrefix> {
  const extendsLast = last === undefined ||
    (messages.length >= last.count && fingerprint(messages, last.count) === last.hash);
  if (!extendsLast) {
    return err("prefix-broken", `The first ${last.count} messages are not those sent before`);
  }
  return ok({ count: messages.length, hash: fingerprint(messages, messages.length) });
}
