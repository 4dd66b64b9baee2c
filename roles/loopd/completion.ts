// One streamed answer, put together from its chunks. What the server sends is an outside party's
// text: unknown keys are passed over, wrong types break the stream.
//
// 1. Tool calls are keyed by `index`; ids of the server are not used.
// 2. The answer is complete only with a finish reason and `[DONE]`.
import { z } from "zod";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { AssistantRecord, Timings } from "../../shared/session_log/records.ts";
import { parseJson } from "../../shared/wire/codec.ts";

const Count = z.int().min(0);
const CallPart = z.object({
  index: z.int().min(0).max(255),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});
const Delta = z.object({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(CallPart).nullish(),
});
const Chunk = z.object({
  id: z.string().nullish(),
  choices: z.array(z.object({ finish_reason: z.string().nullish(), delta: Delta.nullish() }))
    .nullish(),
  prompt_progress: z.object({ total: Count, processed: Count }).nullish(),
  timings: z.object(Timings.shape).nullish().catch(null),
  error: z.unknown().optional(),
});

const Finish = AssistantRecord.shape.finish;
export interface ReceivedCall {
  readonly name: string;
  readonly arguments: string;
}
/** A whole answer, text exactly as received. */
export interface Answer {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly ReceivedCall[];
  readonly finish: z.output<typeof Finish>;
  readonly timings: Timings | null;
}

/** What one event brought, for those who watch the answer come. */
export type Piece =
  | { readonly is: "progress"; readonly percent: number }
  | { readonly is: "thinking" | "answer"; readonly text: string }
  | { readonly is: "call" };

/** UTF-16 units of an answer: the record that keeps it, escaped at its worst, fits a log's line. */
const MAX_ANSWER_UNITS = 600_000;

type Building = {
  id: string | null;
  content: string;
  reasoning: string;
  calls: Map<number, { name: string; arguments: string }>;
  finish: string | null;
  timings: Timings | null;
  isDone: boolean;
  thinking: number;
  units: number;
};

export type Completion = ReturnType<typeof completion>;

export function completion() {
  const state: Building = {
    id: null,
    content: "",
    reasoning: "",
    calls: new Map(),
    finish: null,
    timings: null,
    isDone: false,
    thinking: 0,
    units: 0,
  };
  return {
    /** Takes one event's data. Fails with `model-stream-broken`. */
    take: (data: string) => take(state, data),
    /** The answer, once it is complete. */
    answer: () => answerOf(state),
    id: () => state.id,
    /** Thinking tokens so far, as near as the stream tells. */
    thinkingTokens: () => state.thinking,
    /** The text so far, for the log of a failure. */
    partial: () => state.reasoning + state.content,
  };
}

function take(state: Building, data: string): Result<Piece[]> {
  if (state.isDone) return err("model-stream-broken", "An event came after the end");
  if (data === "[DONE]") {
    state.isDone = true;
    return ok([]);
  }
  const value = parseJson(data);
  const parsed = value.ok ? Chunk.safeParse(value.value) : null;
  if (!parsed?.success) return err("model-stream-broken", "An event is not of the agreed form");
  const chunk = parsed.data;
  if (chunk.error !== undefined && chunk.error !== null) {
    const said = z.object({ message: z.string() }).safeParse(chunk.error);
    const why = said.success ? said.data.message.slice(0, 500) : "no reason given";
    return err("model-stream-broken", `The server ended its answer with an error: ${why}`);
  }
  state.id ??= chunk.id ?? null;
  state.timings = chunk.timings ?? state.timings;
  const pieces: Piece[] = [];
  const progress = chunk.prompt_progress;
  if (progress !== undefined && progress !== null && progress.total > 0) {
    const percent = Math.min(100, Math.floor(100 * progress.processed / progress.total));
    pieces.push({ is: "progress", percent });
  }
  const choice = chunk.choices?.[0];
  state.finish = choice?.finish_reason ?? state.finish;
  if (choice?.delta) takeDelta(state, choice.delta, chunk.timings?.predicted_n ?? null, pieces);
  return state.units <= MAX_ANSWER_UNITS
    ? ok(pieces)
    : err("model-stream-broken", `The answer is longer than ${MAX_ANSWER_UNITS} characters`);
}

function takeDelta(
  state: Building,
  delta: z.output<typeof Delta>,
  predicted: number | null,
  pieces: Piece[],
): void {
  if (delta.reasoning_content) {
    state.reasoning += delta.reasoning_content;
    state.units += delta.reasoning_content.length;
    // Until the answer begins, every token generated was a thought, shown or not.
    const hasAnswer = state.content !== "" || state.calls.size > 0;
    state.thinking = Math.max(state.thinking + 1, hasAnswer ? 0 : predicted ?? 0);
    pieces.push({ is: "thinking", text: delta.reasoning_content });
  }
  if (delta.content) {
    state.content += delta.content;
    state.units += delta.content.length;
    pieces.push({ is: "answer", text: delta.content });
  }
  for (const part of delta.tool_calls ?? []) {
    const call = state.calls.get(part.index) ?? { name: "", arguments: "" };
    state.calls.set(part.index, call);
    const { name, arguments: text } = part.function ?? {};
    if (call.name === "") call.name = name ?? "";
    call.arguments += text ?? "";
    state.units += (name?.length ?? 0) + (text?.length ?? 0);
    pieces.push({ is: "call" });
  }
}

function answerOf(state: Building): Result<Answer> {
  if (!state.isDone) return err("model-stream-broken", "The stream ended before its end mark");
  const finish = Finish.safeParse(state.finish);
  if (!finish.success) {
    return err("model-stream-broken", `The answer has no finish that is known: ${state.finish}`);
  }
  const calls = [...state.calls.entries()].sort(([a], [b]) => a - b).map(([, call]) => call);
  const { content, reasoning, timings } = state;
  return ok({ content, reasoning, calls, finish: finish.data, timings });
}
