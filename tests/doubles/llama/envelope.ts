// The JSON around what the model says: chunks, the whole message, usage, timings and errors.
// Times are computed from token counts, so two runs of one script send the same figures.
import type { Fault } from "./chat_request.ts";
import type { JsonObject } from "./json_value.ts";
import type { CallDelta, Delta } from "./plan.ts";

export type Counts = {
  readonly cacheN: number;
  readonly promptN: number;
  readonly predictedN: number;
};

const PROMPT_MS_PER_TOKEN = 0.5;
const TOKEN_MS = 20;

const rounded = (value: number) => Math.round(value * 1000) / 1000;

export function timings({ cacheN, promptN, predictedN }: Counts): JsonObject {
  const promptMs = promptN * PROMPT_MS_PER_TOKEN;
  const predictedMs = predictedN * TOKEN_MS;
  const gaps = predictedN - 1;
  return {
    cache_n: cacheN,
    prompt_n: promptN,
    prompt_ms: promptMs,
    prompt_per_token_ms: PROMPT_MS_PER_TOKEN,
    prompt_per_second: rounded(1000 / PROMPT_MS_PER_TOKEN),
    predicted_n: predictedN,
    predicted_ms: predictedMs,
    predicted_per_token_ms: gaps > 0 ? rounded(predictedMs / gaps) : 0,
    predicted_per_second: gaps > 0 ? rounded(1000 * gaps / predictedMs) : 0,
  };
}

export function usage({ cacheN, promptN, predictedN }: Counts): JsonObject {
  const promptTokens = cacheN + promptN;
  return {
    completion_tokens: predictedN,
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + predictedN,
    prompt_tokens_details: { cached_tokens: cacheN },
  };
}

export type Identity = {
  readonly id: string;
  readonly model: string;
  readonly buildInfo: string;
  readonly createdUnixS: number;
  readonly extra: JsonObject;
};

function stamp(who: Identity, object: string): JsonObject {
  return {
    created: who.createdUnixS,
    id: who.id,
    model: who.model,
    system_fingerprint: who.buildInfo,
    object,
    ...who.extra,
  };
}

export type ChunkDelta =
  | Delta
  | { readonly role: "assistant"; readonly content: null }
  | JsonObject;

/** One event of a stream; `more` holds timings, progress or nothing. */
export function chunk(
  who: Identity,
  delta: ChunkDelta,
  finish: string | null,
  more: JsonObject,
): JsonObject {
  const choices = [{ finish_reason: finish, index: 0, delta }];
  return { choices, ...stamp(who, "chat.completion.chunk"), ...more };
}

export function usageChunk(who: Identity, more: JsonObject): JsonObject {
  return { choices: [], ...stamp(who, "chat.completion.chunk"), ...more };
}

/** What a stream's deltas add up to. */
export type Collected = {
  content: string;
  reasoning: string;
  readonly calls: Map<number, { id: string; name: string; args: string }>;
};

export function collect(into: Collected, delta: Delta): void {
  if ("content" in delta) into.content += delta.content;
  else if ("reasoning_content" in delta) into.reasoning += delta.reasoning_content;
  else collectCall(into, delta.tool_calls[0]);
}

function collectCall(into: Collected, delta: CallDelta): void {
  const known = into.calls.get(delta.index) ?? { id: "", name: "", args: "" };
  into.calls.set(delta.index, {
    id: delta.id ?? known.id,
    name: delta.function.name ?? known.name,
    args: known.args + delta.function.arguments,
  });
}

/** The answer to a request without `stream`. */
export function wholeAnswer(
  who: Identity,
  said: Collected,
  finish: string,
  more: JsonObject,
): JsonObject {
  const calls = [...said.calls.values()].map(({ id, name, args }) => ({
    type: "function",
    function: { name, arguments: args },
    id,
  }));
  const message = {
    role: "assistant",
    content: said.content,
    ...(said.reasoning === "" ? {} : { reasoning_content: said.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const choices = [{ finish_reason: finish, index: 0, message }];
  return { choices, ...stamp(who, "chat.completion"), ...more };
}

export function errorBody(fault: Omit<Fault, "ok">): JsonObject {
  const { status, message, type, extra } = fault;
  return { error: { code: status, message, type, ...extra } };
}
