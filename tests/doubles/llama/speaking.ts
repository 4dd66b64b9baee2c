// An answer on the wire: progress while the prompt is read, then deltas, then the end, in the
// server's order; or, without `stream`, one JSON message. The fault knobs break it on purpose.
import type { Answer } from "./completion.ts";
import { keepBytes } from "./conversations.ts";
import {
  chunk,
  type ChunkDelta,
  collect,
  type Collected,
  type Counts,
  errorBody,
  timings,
  usage,
  usageChunk,
  wholeAnswer,
} from "./envelope.ts";
import { type Break, generate, type Outcome } from "./generate.ts";
import { isObject, type JsonObject, numberOf } from "./json_value.ts";
import { FORMAT_ERROR } from "./knobs.ts";
import type { Delta } from "./plan.ts";
import { respondJson, respondText } from "./replies.ts";
import { type SseOut, sseOut } from "./sse_out.ts";
import { rest } from "./waiting.ts";

const ROLE: ChunkDelta = { role: "assistant", content: null };
const PROXY_ERROR = "proxy error: Failed to read connection";
const DEFAULT_PING_S = 30;

type Free = (outcome: Outcome) => Promise<void>;
type Show = (delta: Delta | null, predictedN: number) => Promise<void>;

export async function answerStream(a: Answer, tokens: number[], free: Free): Promise<Outcome> {
  const { body } = a.prepared.request;
  const pingS = numberOf(body["sse_ping_interval"], DEFAULT_PING_S);
  const out = sseOut({
    exchange: a.exchange,
    knobs: a.knobs,
    pingMs: Math.max(0, pingS) * a.engine.options.pingUnitMs,
    copy: (bytes) => {
      if (a.conversation !== null) keepBytes(a.conversation, bytes);
    },
  });
  const isEarly = a.cancelled.aborted;
  if (!isEarly) await out.open();
  const progress = body["return_progress"] === true ? progressTo(a, out) : () => Promise.resolve();
  const outcome = await run(a, tokens, progress, showTo(a, out, tokens));
  const isLate = outcome.kind === "cancelled";
  if (isLate) out.stop();
  await free(outcome);
  if (!isLate) await finishStream(a, out, outcome, tokens.length);
  return outcome;
}

/** Reads the prompt in batches, then generates. */
async function run(
  a: Answer,
  tokens: number[],
  progress: (processed: number) => Promise<void>,
  show: Show,
): Promise<Outcome> {
  const { slot, cacheN } = a.grant;
  const { body } = a.prepared.request;
  const total = a.prepared.tokens.length;
  const wake = AbortSignal.any([a.cancelled, a.task.wake.signal]);
  await progress(cacheN);
  for (const processed of batchEnds(a, total, cacheN)) {
    await rest(a.knobs.batchMs, wake);
    if (wake.aborted) break;
    slot.task.processed = Math.floor(processed) - cacheN;
    await progress(Math.floor(processed));
  }
  return await generate({
    plan: a.plan,
    task: a.task,
    knobs: a.knobs,
    cancelled: a.cancelled,
    limit: a.limit,
    budget: a.prepared.prompt.thinking === "open" ? a.prepared.request.reasoningBudget : -1,
    maxMs: numberOf(body["t_max_predict_ms"], 0),
    endTagForbidden: a.endTagForbidden,
    show,
    onToken: (n) => {
      slot.task.decoded = n;
    },
  }, tokens);
}

function batchEnds(a: Answer, total: number, cacheN: number): number[] {
  const left = total - cacheN;
  const wanted = a.knobs.progressEvents;
  const count = wanted > 1 ? wanted - 1 : Math.max(1, Math.ceil(left / a.engine.options.batch));
  const step = wanted > 1 ? left / count : a.engine.options.batch;
  return Array.from({ length: count }, (_, i) => Math.min(total, cacheN + (i + 1) * step))
    .with(count - 1, total);
}

function progressTo(a: Answer, out: SseOut): (processed: number) => Promise<void> {
  const { cacheN } = a.grant;
  const isTimed = a.prepared.request.body["timings_per_token"] === true;
  return (processed) => {
    const figures = timings({ cacheN, promptN: processed - cacheN, predictedN: 0 });
    const prompt_progress = {
      total: a.prepared.tokens.length,
      cache: cacheN,
      processed,
      time_ms: Math.round(numberOf(figures["prompt_ms"], 0)),
    };
    const more = isTimed && !a.knobs.omitTimings ? { timings: figures } : {};
    return out.event(chunk(a.who, ROLE, null, { ...more, prompt_progress }));
  };
}

function countsOf(a: Answer, predictedN: number): Counts {
  const { cacheN } = a.grant;
  return { cacheN, promptN: a.prepared.tokens.length - cacheN, predictedN };
}

function timingsOf(a: Answer, predictedN: number): JsonObject {
  return a.knobs.omitTimings ? {} : { timings: timings(countsOf(a, predictedN)) };
}

/** The role goes out with the first token of whole characters, whether or not it shows anything. */
function showTo(a: Answer, out: SseOut, tokens: readonly number[]): Show {
  const { body } = a.prepared.request;
  let hasBegun = false;
  let deltas = 0;
  const begin = async (more: JsonObject) => {
    if (!a.knobs.noRole) await out.event(chunk(a.who, ROLE, null, more));
    if (a.knobs.unknownEvent) await out.event({ object: "unheard.of", n: 1 });
    hasBegun = true;
  };
  return async (delta, predictedN) => {
    const more = body["timings_per_token"] === true ? timingsOf(a, predictedN) : {};
    if (!hasBegun) await begin(delta === null ? more : {});
    if (delta === null) return;
    deltas++;
    const event = chunk(a.who, delta, null, more);
    const isLogged = body["logprobs"] === true && "content" in delta;
    await out.event(isLogged ? withLogprobs(event, delta.content, tokens.at(-1) ?? 0) : event);
    if (a.knobs.pauseAfter?.deltas !== deltas) return;
    out.hush();
    await rest(a.knobs.pauseAfter.ms, AbortSignal.any([a.cancelled, a.task.wake.signal]));
    out.speak();
  };
}

function withLogprobs(event: JsonObject, token: string, id: number): JsonObject {
  const bytes = [...new TextEncoder().encode(token)];
  const entry = { id, token, bytes, logprob: 0, top_logprobs: [] };
  const choices = Array.isArray(event["choices"]) ? event["choices"].filter(isObject) : [];
  return { ...event, choices: choices.map((c) => ({ ...c, logprobs: { content: [entry] } })) };
}

async function finishStream(
  a: Answer,
  out: SseOut,
  outcome: Outcome,
  predictedN: number,
): Promise<void> {
  if (outcome.kind === "cancelled") return;
  if (outcome.kind === "finished") return await endWell(a, out, outcome.finish, predictedN);
  const how = howBroken(a, outcome);
  if (how.kind === "reset") {
    out.stop();
    return a.exchange.reset();
  }
  if (how.kind === "proxy") await out.raw(PROXY_ERROR);
  if (how.kind === "error") {
    const message = how.message;
    await out.event(errorBody({ status: 500, type: "server_error", message }));
  }
  await out.end();
}

type How = { readonly kind: Break; readonly message: string };

type Broken = Exclude<Outcome, { kind: "finished" | "cancelled" }>;

function howBroken(a: Answer, outcome: Broken): How {
  if (outcome.kind === "aborted") return { kind: "reset", message: "" };
  if (outcome.kind === "broken") {
    return { kind: outcome.how, message: a.knobs.errorAfter?.message ?? FORMAT_ERROR };
  }
  const { interrupt } = outcome;
  return { kind: interrupt.kind, message: interrupt.kind === "error" ? interrupt.message : "" };
}

async function endWell(a: Answer, out: SseOut, finish: string, predictedN: number): Promise<void> {
  const options = a.prepared.request.body["stream_options"];
  const wantsUsage = isObject(options) && options["include_usage"] === true && !a.knobs.omitUsage;
  const figures = timingsOf(a, predictedN);
  const verbose = verboseOf(a);
  const last = wantsUsage ? {} : { ...figures, ...verbose };
  if (!a.knobs.noFinish) await out.event(chunk(a.who, {}, finish, last));
  if (wantsUsage) {
    const more = { usage: usage(countsOf(a, predictedN)), ...figures, ...verbose };
    await out.event(usageChunk(a.who, more));
  }
  if (!a.knobs.noDone) await out.event("[DONE]");
  await out.end();
}

function verboseOf(a: Answer): JsonObject {
  if (a.prepared.request.body["verbose"] !== true) return {};
  const tokens_cached = a.grant.slot.tokens.length;
  return { __verbose: { prompt: a.prepared.prompt.text, tokens_cached } };
}

export async function answerWhole(a: Answer, tokens: number[], free: Free): Promise<Outcome> {
  const said: Collected = { content: "", reasoning: "", calls: new Map() };
  const show: Show = (delta) => Promise.resolve(delta === null ? undefined : collect(said, delta));
  const outcome = await run(a, tokens, () => Promise.resolve(), show);
  await free(outcome);
  if (outcome.kind === "cancelled") return outcome;
  if (outcome.kind === "finished") {
    const counts = countsOf(a, tokens.length);
    const figures = a.knobs.omitUsage ? {} : { usage: usage(counts) };
    const more = { ...figures, ...timingsOf(a, tokens.length), ...verboseOf(a) };
    await respondJson(a.exchange, 200, wholeAnswer(a.who, said, outcome.finish, more));
    return outcome;
  }
  const how = howBroken(a, outcome);
  if (how.kind === "reset" || how.kind === "end") a.exchange.reset();
  else if (how.kind === "proxy") await respondText(a.exchange, 500, PROXY_ERROR);
  else {
    const message = how.message;
    await respondJson(
      a.exchange,
      500,
      errorBody({ status: 500, type: "server_error", message }),
    );
  }
  return outcome;
}
