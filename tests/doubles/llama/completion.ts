// One `POST /v1/chat/completions`: judged, queued, answered. Until the slot starts there is not one
// byte; an error before that is an ordinary JSON answer, whether or not a stream was asked for.
import { type ChatRequest, type Fault, invalid, judgeChat, type Judged } from "./chat_request.ts";
import {
  beginConversation,
  type Conversation,
  type Conversations,
  finishConversation,
} from "./conversations.ts";
import { crashEngine, type Engine, type RunningTask } from "./engine.ts";
import { errorBody, type Identity } from "./envelope.ts";
import type { Outcome } from "./generate.ts";
import type { Exchange } from "./http_server.ts";
import { isObject, listOf, member, textOf } from "./json_value.ts";
import type { Knobs } from "./knobs.ts";
import { type Plan, planOf } from "./plan.ts";
import type { RequestRecord } from "./record.ts";
import { respondJson } from "./replies.ts";
import type { Grant } from "./slots.ts";
import { answerStream, answerWhole } from "./speaking.ts";
import { type Prompt, renderPrompt } from "./templates.ts";
import { END_THINK_TOKEN, tokenize } from "./tokens.ts";
import type { Speech } from "./turn.ts";
import { rest, valueUnless } from "./waiting.ts";

/** A request whose prompt is known. */
export type Prepared = {
  readonly request: ChatRequest;
  readonly prompt: Prompt;
  readonly tokens: readonly number[];
};

/** Parses, validates, renders and tokenizes, as the completion and the counting endpoints do. */
export function prepare(engine: Engine, bodyText: string): Judged<Prepared> {
  const { options } = engine;
  const judged = judgeChat(bodyText, options.profile, options.slots);
  if (!judged.ok) return judged;
  const prompt = renderPrompt(options.template, judged.value, options.keepThinking);
  if (!prompt.ok) return prompt;
  const tokens = tokenize(prompt.value.text);
  return { ok: true, value: { request: judged.value, prompt: prompt.value, tokens } };
}

/** Everything one running answer needs; made when its slot has started. */
export type Answer = {
  readonly engine: Engine;
  readonly exchange: Exchange;
  readonly prepared: Prepared;
  readonly grant: Grant;
  readonly knobs: Knobs;
  readonly who: Identity;
  readonly task: RunningTask;
  readonly plan: Plan;
  readonly cancelled: AbortSignal;
  readonly conversation: Conversation | null;
  readonly record: RequestRecord;
  readonly limit: number;
  readonly endTagForbidden: boolean;
};

export async function complete(
  engine: Engine,
  exchange: Exchange,
  conversations: Conversations,
  record: RequestRecord,
): Promise<void> {
  const plain = engine.knobs().httpAnswer;
  if (plain !== null) {
    const type = [["Content-Type", plain.contentType]] as const;
    return await exchange.respond(plain.status, type, plain.body);
  }
  const prepared = prepare(engine, exchange.request.bodyText);
  if (!prepared.ok) return await refuse(exchange, prepared);
  const { request, tokens } = prepared.value;
  const nCtx = engine.options.nCtx;
  if (tokens.length >= nCtx) return await refuse(exchange, tooLong(tokens.length, nCtx));

  const conversationId = exchange.request.headers.get("x-conversation-id");
  const conversation = conversationId === undefined
    ? null
    : beginConversation(conversations, conversationId);
  const cancelled = AbortSignal.any([
    engine.stopped,
    conversation === null ? exchange.gone : conversation.cancel.signal,
  ]);
  const ask = {
    idSlot: request.idSlot,
    tokens,
    useCache: request.body["cache_prompt"] !== false,
    knobs: engine.knobs(),
  };
  const grant = await engine.pool.acquire(ask, cancelled);
  if (grant !== null) {
    await answer({ engine, exchange, prepared: prepared.value, grant, cancelled }, {
      conversation,
      record,
    });
  }
  if (conversation !== null) finishConversation(conversation);
}

type Started = Pick<Answer, "engine" | "exchange" | "prepared" | "grant" | "cancelled">;
type Kept = Pick<Answer, "conversation" | "record">;

async function answer(started: Started, kept: Kept): Promise<void> {
  const { engine, exchange, prepared, grant, cancelled } = started;
  const { slot, cacheN } = grant;
  const saying = engine.script()(prepared.request, {
    turn: engine.turns++,
    model: engine.options.model,
    slot: slot.id,
    cacheN,
    promptTokens: prepared.tokens.length,
    thinking: prepared.prompt.thinking === "open",
  });
  const turn = await valueUnless(saying, cancelled);
  if (turn === null) return engine.pool.release(slot, prepared.tokens.slice(0, cacheN));
  const knobs = { ...engine.knobs(), ...(turn.kind === "speech" ? turn.knobs : {}) };
  await rest(knobs.delayHeadersMs, cancelled);
  if (turn.kind === "refusal") {
    engine.pool.release(slot, prepared.tokens.slice(0, cacheN));
    return await refuse(exchange, { ok: false, ...turn });
  }
  const id = `chatcmpl-${engine.newId()}`;
  const task: RunningTask = {
    id,
    reasoningControl: prepared.request.body["reasoning_control"] === true,
    endReasoning: false,
    interrupt: null,
    wake: new AbortController(),
  };
  engine.running.set(id, task);
  slot.task.limit = limitOf(engine, prepared, knobs);
  const whole: Answer = {
    ...started,
    ...kept,
    knobs,
    task,
    who: {
      id,
      model: engine.options.model,
      buildInfo: knobs.buildInfo ?? engine.options.buildInfo,
      createdUnixS: Math.floor(Date.now() / 1000),
      extra: knobs.extraFields,
    },
    plan: planFor(engine, prepared, turn, knobs),
    limit: slot.task.limit,
    endTagForbidden: forbidsEndTag(prepared.request),
  };
  Object.assign(kept.record, { slot: slot.id, cacheN, promptN: prepared.tokens.length - cacheN });
  const generated: number[] = [];
  const outcome = prepared.request.stream
    ? await answerStream(whole, generated, (o) => free(whole, generated, o))
    : await answerWhole(whole, generated, (o) => free(whole, generated, o));
  kept.record.outcome = outcome.kind;
}

function planFor(engine: Engine, prepared: Prepared, speech: Speech, knobs: Knobs): Plan {
  const { request, prompt } = prepared;
  const { body } = request;
  const stop = member(body, "stop");
  return planOf(speech, {
    template: engine.options.template,
    thinking: prompt.thinking,
    callsAllowed: request.tools.length > 0 && request.toolChoice !== "none",
    parallelCalls: body["parallel_tool_calls"] !== false,
    reasoningFormat: body["reasoning_format"] === "none" ? "none" : "apart",
    budgetMessage: textOf(member(body, "reasoning_budget_message")),
    stops: typeof stop === "string" ? [stop] : listOf(stop).filter((s) => typeof s === "string"),
    prefill: prompt.prefill,
    newId: engine.newId,
    knobs,
  });
}

function limitOf(engine: Engine, prepared: Prepared, knobs: Knobs): number {
  const asked = knobs.limitTokens > 0 ? knobs.limitTokens : prepared.request.limit;
  const room = engine.options.nCtx - prepared.tokens.length;
  return asked < 0 ? room : Math.min(Math.max(1, asked), room);
}

/** Whether the request makes the end of thinking impossible to sample. */
function forbidsEndTag(request: ChatRequest): boolean {
  const grammar = member(request.body, "grammar");
  if (typeof grammar === "string" && !grammar.includes("</think>")) return true;
  const bias = member(request.body, "logit_bias");
  const pairs: unknown[] = isObject(bias) ? Object.entries(bias) : [...listOf(bias)];
  return pairs.some((pair) => {
    const [token, value] = listOf(pair);
    return value === false && (`${token}` === `${END_THINK_TOKEN}` || token === "</think>");
  });
}

/** Ends the task; the slot keeps what was evaluated, or nothing when the process fell over. */
async function free(a: Answer, generated: readonly number[], outcome: Outcome): Promise<void> {
  const { engine, grant: { slot }, knobs, prepared } = a;
  engine.running.delete(a.task.id);
  const evaluated = slot.task.cached + slot.task.processed;
  const tokens = [...prepared.tokens.slice(0, evaluated), ...generated.slice(0, -1)];
  const lost = outcome.kind === "interrupted" || outcome.kind === "aborted";
  slot.checkpoints = checkpointsOf(prepared.tokens);
  a.record.predictedN = generated.length;
  if (outcome.kind === "aborted") crashEngine(engine, { kind: "reset" });
  if (outcome.kind !== "cancelled" || engine.stopped.aborted) {
    return engine.pool.release(slot, lost ? [] : tokens);
  }
  if (knobs.stuckSlot) {
    engine.stuck.add({ slot, tokens });
    return;
  }
  await rest(knobs.cancelMs, engine.stopped);
  engine.pool.release(slot, tokens);
}

const NEAR_END_TOKENS = 4;

/** Where a model that cannot cut its state keeps copies: the last user message, near the end. */
function checkpointsOf(tokens: readonly number[]): number[] {
  const [start = 0, user = 0] = tokenize("<|im_start|>user");
  const last = tokens.findLastIndex((id, i) => id === start && tokens[i + 1] === user);
  return [Math.max(0, last), Math.max(0, tokens.length - NEAR_END_TOKENS)];
}

export function refuse(exchange: Exchange, fault: Fault): Promise<void> {
  return respondJson(exchange, fault.status, errorBody(fault));
}

function tooLong(promptTokens: number, nCtx: number): Fault {
  return {
    ...invalid(
      `request (${promptTokens} tokens) exceeds the available context size (${nCtx} tokens), try increasing it`,
    ),
    type: "exceed_context_size_error",
    extra: { n_prompt_tokens: promptTokens, n_ctx: nCtx },
  };
}
