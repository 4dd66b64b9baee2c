// From what the script says to what is generated: a list of steps, each with the raw text the model
// writes and the delta a client sees. Raw texts joined are exactly what the template would render
// for the same message, so that an exact replay finds every token in the cache.
import { isObject, type JsonObject, rawMembers, spacedJson, templateValue } from "./json_value.ts";
import type { Knobs } from "./knobs.ts";
import { callGap, type TemplateName } from "./templates.ts";
import { bytesOfToken, END_TOKEN_TEXT, streamedPieces, tokenize } from "./tokens.ts";
import type { Finish, Part, Speech, Text } from "./turn.ts";

export type CallDelta = {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function";
  readonly function: { readonly name?: string; readonly arguments: string };
};
export type Delta =
  | { readonly reasoning_content: string }
  | { readonly content: string }
  | { readonly tool_calls: readonly [CallDelta] };

export type Step = {
  readonly raw: string;
  readonly delta: Delta | null;
  /** Holds this step back. */
  readonly holdMs?: number;
  readonly until?: Promise<unknown>;
  /** The generation ends here by itself: the end token, or a stop string. */
  readonly ends?: true;
};

export type Plan = {
  readonly thought: readonly Step[];
  /** Repeated after `thought` until something ends it. */
  readonly endless: Step | null;
  /** From the end of thinking on. */
  readonly answer: readonly Step[];
  /** How a forced end of thinking goes on: the message and the end tag come first. */
  readonly forced: readonly Step[];
  readonly finish: Finish;
};

export type PlanContext = {
  readonly template: TemplateName;
  readonly thinking: "open" | "closed" | "none";
  readonly callsAllowed: boolean;
  readonly parallelCalls: boolean;
  /** `none` leaves the thought and its tags in the content. */
  readonly reasoningFormat: "none" | "apart";
  readonly budgetMessage: string;
  readonly stops: readonly string[];
  readonly prefill: { readonly content: string; readonly reasoning: string } | null;
  readonly newId: () => string;
  readonly knobs: Knobs;
};

const content = (text: string): Delta => ({ content: text });
const reasoning = (text: string): Delta => ({ reasoning_content: text });
const silentStep = (raw: string): Step => ({ raw, delta: null });

/** The steps of one answer. */
export function planOf(speech: Speech, ctx: PlanContext): Plan {
  const open = ctx.thinking === "open";
  const cut = open ? speech.parts.findLastIndex(isThought) + 1 : 0;
  const before = speech.parts.slice(0, cut);
  const after = speech.parts.slice(cut).filter((p) => !isThought(p));
  const inside = after[0]?.kind === "call" && after[0].insideThinking && ctx.callsAllowed;
  const show = ctx.reasoningFormat === "none" ? content : reasoning;
  const opening = open && ctx.reasoningFormat === "none" ? "<think>\n" : "";
  const lead = opening + ((open ? ctx.prefill?.reasoning : ctx.prefill?.content) ?? "");
  const thought = before.flatMap((p) => thoughtSteps(p, show));
  const body = [...answerSteps(after, ctx), END_STEP];
  const closing = open && !inside ? closeSteps(thought, ctx) : [];
  const shown = thought.some((s) => s.delta !== null);
  const unit = before.find((p) => p.kind === "endless");
  return {
    thought: shown ? withLead(thought, lead) : thought,
    endless: unit?.kind === "endless" ? { raw: unit.unit, delta: show(unit.unit) } : null,
    answer: withStops(withLead([...closing, ...body], shown ? "" : lead), ctx.stops),
    forced: [...forcedSteps(thought, ctx, show), ...withStops(body, ctx.stops)],
    finish: speech.finish ?? (body.some(beginsCall) ? "tool_calls" : "stop"),
  };
}

const isThought = (p: Part) => p.kind === "reasoning" || p.kind === "endless";

function forcedSteps(
  thought: readonly Step[],
  ctx: PlanContext,
  show: (text: string) => Delta,
): Step[] {
  const { budgetMessage, knobs } = ctx;
  const leftover = { raw: "", delta: content(`${rawOf(thought)}\n</think>\n\n`) };
  return [
    ...(budgetMessage === "" ? [] : [{ raw: budgetMessage, delta: show(budgetMessage) }]),
    silentStep("</think>"),
    silentStep("\n\n"),
    ...(knobs.leftoverThought ? [leftover] : []),
  ];
}

const rawOf = (steps: readonly Step[]) => steps.map((s) => s.raw).join("");
const beginsCall = (s: Step) => s.delta !== null && "tool_calls" in s.delta;

const END_STEP: Step = { raw: END_TOKEN_TEXT, delta: null, ends: true };

function thoughtSteps(part: Part, show: (text: string) => Delta): Step[] {
  const isText = part.kind === "reasoning" || part.kind === "content";
  return isText ? textSteps(part.text, show) : heldStep(part);
}

function heldStep(part: Part): Step[] {
  if (part.kind === "pause") return [{ raw: "", delta: null, holdMs: part.ms }];
  if (part.kind === "wait") return [{ raw: "", delta: null, until: part.until }];
  return part.kind === "silent" ? [silentStep(part.raw)] : [];
}

/** One step a piece: the list's own pieces, or the text's tokens. */
function textSteps(text: Text, show: (text: string) => Delta): Step[] {
  const pieces = typeof text === "string" ? streamedPieces(text) : text;
  return pieces.map((raw) => ({ raw, delta: show(raw) }));
}

/** The newline before the end tag still belongs to the thought; the tag itself shows nothing. */
function closeSteps(thought: readonly Step[], ctx: PlanContext): Step[] {
  const tag = "\n</think>\n\n";
  if (ctx.reasoningFormat === "none") return [{ raw: tag, delta: content(tag) }];
  const shown = thought.some((s) => s.delta !== null);
  return [
    { raw: "\n", delta: shown ? reasoning("\n") : null },
    silentStep("</think>"),
    silentStep("\n\n"),
  ];
}

function answerSteps(parts: readonly Part[], ctx: PlanContext): Step[] {
  const text: Step[] = [];
  const calls: Step[][] = [];
  const sameId = ctx.newId();
  for (const part of parts) {
    if (part.kind === "content") text.push(...textSteps(part.text, content));
    else if (part.kind !== "call") (calls.at(-1) ?? text).push(...heldStep(part));
    else if (!ctx.knobs.dropCalls && (ctx.parallelCalls || calls.length === 0)) {
      const gap = callGap(ctx.template, calls.length, rawOf(text).trim() !== "");
      const id = ctx.knobs.duplicateToolIds ? sameId : ctx.newId();
      calls.push(callSteps(part, calls.length, gap, id, ctx));
    }
  }
  return [...text, ...(ctx.knobs.interleaveCalls ? interleaved(calls) : calls.flat())];
}

type CallPart = Extract<Part, { kind: "call" }>;

function callSteps(p: CallPart, index: number, gap: string, id: string, ctx: PlanContext): Step[] {
  const fragment = (args: string): Delta => ({
    tool_calls: [{ index, function: { arguments: args } }],
  });
  const begin = (args: string): Delta => ({
    tool_calls: [{ index, id, type: "function", function: { name: p.name, arguments: args } }],
  });
  const exact = Array.isArray(p.args) ? listOfText(p.args) : null;
  const args = exact?.join("") ?? (isObject(p.args) ? ownStyle(p.args, ctx.template) : `${p.args}`);
  const steps = ctx.template === "qwen2.5"
    ? jsonCallSteps(p.name, args, begin, fragment)
    : taggedCallSteps(p.name, args, begin, fragment);
  const opening = silentStep(`${gap}<tool_call>`);
  if (!ctx.callsAllowed) return textSteps(opening.raw + rawOf(steps), content);
  if (exact === null) return [opening, ...steps];
  const raw = rawOf(steps);
  const last = exact.length - 1;
  const cut = exact.map((text, i) => ({
    raw: i === last ? raw.slice(last) : raw.charAt(i),
    delta: i === 0 ? begin(text) : fragment(text),
  }));
  return [opening, ...cut];
}

const listOfText = (list: readonly unknown[]) => list.filter((t) => typeof t === "string");

/** The arguments as a model trained on the template writes them. */
function ownStyle(args: JsonObject, template: TemplateName): string {
  if (template === "qwen2.5") return spacedJson(args);
  const members = Object.entries(args).map(([k, v]) => `${JSON.stringify(k)}:${spacedJson(v)}`);
  return `{${members.join(",")}}`;
}

function jsonCallSteps(
  name: string,
  args: string,
  begin: (args: string) => Delta,
  fragment: (args: string) => Delta,
): Step[] {
  const text = args.trim();
  return [
    {
      raw: `\n{"name": ${JSON.stringify(name)}, "arguments": ${text.slice(0, 1)}`,
      delta: begin(text.slice(0, 1)),
    },
    ...streamedPieces(text.slice(1)).map((raw) => ({ raw, delta: fragment(raw) })),
    silentStep("}\n</tool_call>"),
  ];
}

function taggedCallSteps(
  name: string,
  args: string,
  begin: (args: string) => Delta,
  fragment: (args: string) => Delta,
): Step[] {
  const steps: Step[] = [{ raw: `\n<function=${name}>\n`, delta: begin("{") }];
  const members = rawMembers(args);
  if (members === null) return [{ ...steps[0], raw: args, delta: begin(args) }];
  members.forEach(({ key, raw }, i) => {
    const comma = i > 0 ? "," : "";
    steps.push({
      raw: `<parameter=${key}>\n`,
      delta: fragment(`${comma}${JSON.stringify(key)}:`),
    });
    const isText = raw.startsWith('"');
    const value = isText ? templateValue(JSON.parse(raw)) : raw;
    if (isText) steps.push({ raw: "", delta: fragment('"') });
    for (const piece of streamedPieces(value)) {
      const shown = isText ? JSON.stringify(piece).slice(1, -1) : piece;
      steps.push({ raw: piece, delta: fragment(shown) });
    }
    steps.push({ raw: "\n</parameter>\n", delta: isText ? fragment('"') : null });
  });
  steps.push({ raw: "</function>\n</tool_call>", delta: fragment("}") });
  return steps;
}

/** Deltas of the calls taken in turns; the raw text stays in the order the model wrote it. */
function interleaved(calls: readonly (readonly Step[])[]): Step[] {
  const ordered = calls.flat();
  const longest = Math.max(0, ...calls.map((c) => c.length));
  const deltas = Array.from({ length: longest }, (_, i) => calls.flatMap((c) => c[i] ?? [])).flat();
  return ordered.map((step, i) => ({ ...step, delta: deltas[i]?.delta ?? null }));
}

/** Glues `lead` to the first delta that is a thought (or, without thinking apart, content). */
function withLead(steps: readonly Step[], lead: string): readonly Step[] {
  if (lead === "") return steps;
  const at = steps.findIndex((s) => s.delta !== null);
  return steps.map((step, i) => {
    if (i !== at || step.delta === null || "tool_calls" in step.delta) return step;
    const delta = "content" in step.delta
      ? content(lead + step.delta.content)
      : reasoning(lead + step.delta.reasoning_content);
    return { ...step, delta };
  });
}

/** Cuts the steps at the first stop string and holds back what may be the start of one. */
function withStops(steps: readonly Step[], stops: readonly string[]): readonly Step[] {
  const all = rawOf(steps);
  const hit = stops.filter((s) => s !== "" && all.includes(s))
    .sort((a, b) => all.indexOf(a) - all.indexOf(b))[0];
  const whole = hit === undefined ? steps : cutAt(steps, all.indexOf(hit));
  const out: Step[] = [];
  let held: { raw: string; text: string } | null = null;
  for (const step of whole) {
    const isText: boolean = step.delta !== null && "content" in step.delta;
    const text: string = (held?.text ?? "") + (isText ? contentOf(step) : "");
    const raw: string = (held?.raw ?? "") + (isText ? step.raw : "");
    if (isText && hit === undefined && mayBegin(text, stops)) held = { raw, text };
    else if (isText) {
      out.push({ ...step, raw, delta: text === "" ? null : content(text) });
      held = null;
    } else {
      if (held !== null) out.push({ raw, delta: content(text) });
      out.push(step);
      held = null;
    }
  }
  return hit === undefined ? out : [...out, { raw: hit, delta: null, ends: true }];
}

function contentOf(step: Step): string {
  return step.delta !== null && "content" in step.delta ? step.delta.content : "";
}

/** The steps up to a place in their joined raw text; the one that straddles it is shortened. */
function cutAt(steps: readonly Step[], end: number): Step[] {
  const out: Step[] = [];
  let at = 0;
  for (const step of steps) {
    const over = at + step.raw.length - end;
    at += step.raw.length;
    if (over <= 0) out.push(step);
    else {
      const raw = step.raw.slice(0, step.raw.length - over);
      const text = contentOf(step).slice(0, -over);
      out.push({ raw, delta: text === "" ? null : content(text) });
      return out;
    }
  }
  return out;
}

function mayBegin(text: string, stops: readonly string[]): boolean {
  return stops.some((stop) => {
    for (let n = 1; n < stop.length; n++) if (text.endsWith(stop.slice(0, n))) return true;
    return false;
  });
}

export type CountedStep = Step & { readonly tokens: readonly number[] };

/** Gives every step the tokens that begin in it; tokens of the joined text, as it is read back. */
export function counted(steps: readonly Step[]): CountedStep[] {
  const lengths = steps.map((s) => new TextEncoder().encode(s.raw).length);
  const tokens = tokenize(rawOf(steps));
  let next = 0;
  let at = 0;
  let end = 0;
  return steps.map((step, i) => {
    end += lengths[i] ?? 0;
    const own: number[] = [];
    for (let id = tokens[next]; id !== undefined && at < end; id = tokens[next]) {
      own.push(id);
      at += bytesOfToken(id).length;
      next++;
    }
    return { ...step, tokens: own };
  });
}
