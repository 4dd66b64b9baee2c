// What the model says: a script turns each request into a Turn, a list of parts in the order they
// are generated. A text given as one string is streamed token by token; given as a list, every
// element is one delta, so a test chooses where fragments are cut.
import type { ChatRequest } from "./chat_request.ts";
import type { JsonObject } from "./json_value.ts";
import type { Knobs } from "./knobs.ts";

export type Text = string | readonly string[];

export type Part =
  | { readonly kind: "reasoning"; readonly text: Text }
  /** Repeats `unit` (starting with a space or newline) until something ends it. */
  | { readonly kind: "endless"; readonly unit: string }
  | { readonly kind: "content"; readonly text: Text }
  /** `args`: an object (written in the template's own style), JSON text, or exact fragments. */
  | {
    readonly kind: "call";
    readonly name: string;
    readonly args: JsonObject | Text;
    readonly insideThinking: boolean;
  }
  /** Tokens that change nothing in the parsed message: generated, counted, never shown. */
  | { readonly kind: "silent"; readonly raw: string }
  /** Holds generation for a time, or until a test lets it go on. */
  | { readonly kind: "pause"; readonly ms: number }
  | { readonly kind: "wait"; readonly until: Promise<unknown> };

export type Finish = "stop" | "length" | "tool_calls";

export type Speech = {
  readonly kind: "speech";
  readonly parts: readonly Part[];
  /** Overrides the finish reason that the generation itself would give. */
  readonly finish?: Finish;
  /** Knobs for this answer only, over those of the double. */
  readonly knobs?: Partial<Knobs>;
};

/** An error before the first byte: an ordinary JSON (or text) answer, even to a stream request. */
export type Refusal = {
  readonly kind: "refusal";
  readonly status: number;
  readonly type: string;
  readonly message: string;
};

export type Turn = Speech | Refusal;

/** What a script may look at beside the request. */
export type ScriptState = {
  /** Completions answered so far, this one not counted. */
  readonly turn: number;
  readonly model: string;
  readonly slot: number;
  readonly cacheN: number;
  readonly promptTokens: number;
  /** Whether the template leaves a think block open for this answer. */
  readonly thinking: boolean;
};

/** Called when the slot has started; headers go out after it returns. */
export type Script = (request: ChatRequest, state: ScriptState) => Turn | Promise<Turn>;

export const think = (text: Text): Part => ({ kind: "reasoning", text });
export const thinkForever = (unit = " and on"): Part => ({ kind: "endless", unit });
export const say = (text: Text): Part => ({ kind: "content", text });
export const call = (name: string, args: JsonObject | Text): Part => ({
  kind: "call",
  name,
  args,
  insideThinking: false,
});
export const callInsideThinking = (name: string, args: JsonObject | Text): Part => ({
  kind: "call",
  name,
  args,
  insideThinking: true,
});
export const silent = (raw: string): Part => ({ kind: "silent", raw });
export const pause = (ms: number): Part => ({ kind: "pause", ms });
export const waitFor = (until: Promise<unknown>): Part => ({ kind: "wait", until });

/** An answer made of `parts`. */
export function speak(...parts: Part[]): Speech {
  return { kind: "speech", parts };
}

/** The answer with knobs of its own. */
export function withKnobs(speech: Speech, knobs: Partial<Knobs>): Speech {
  return { ...speech, knobs: { ...speech.knobs, ...knobs } };
}

/** A script that says `turns` one after another and then repeats the last one. */
export function inOrder(...turns: Turn[]): Script {
  let next = 0;
  return () => {
    const turn = turns[Math.min(next, turns.length - 1)] ?? speak();
    next++;
    return turn;
  };
}
