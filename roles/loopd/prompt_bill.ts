// What a new session's beginning costs, in tokens: by the server's own count of growing bodies when
// the model is loaded, else by an estimate of four bytes a token.
import { z } from "zod";
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import type { Baseline } from "../../shared/session_log/records.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import type { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { BASELINE_BUDGET } from "./baseline.ts";
import type { Model } from "./model.ts";
import { modelState } from "./model_facts.ts";
import { SYSTEM_TEXT } from "./system.ts";

type Bill = BodyOf<typeof PROMPT_BILL["replies"][number]>;

const Counted = z.object({ input_tokens: z.int().min(0) });

/** The parts in the order in which they are sent, each with all that came before it. */
function stages(baseline: Baseline) {
  const user = { role: "user", content: "Hello" };
  const fixed = { role: "system", content: SYSTEM_TEXT };
  const whole = { role: "system", content: baseline.system };
  const { tools } = baseline;
  return [
    { part: "system text and one short message", messages: [fixed, user], tools: [] },
    { part: "memory block", messages: [whole, user], tools: [] },
    { part: "tools", messages: [whole, user], tools },
    { part: "example exchanges", messages: [whole, ...baseline.examples, user], tools },
  ];
}

export async function promptBill(
  model: Model,
  config: LoopdConfig,
  baseline: Baseline,
): Promise<Bill> {
  const name = config.inference.model;
  const state = await modelState(model, name);
  const count = async (messages: unknown, tools: unknown): Promise<number | null> => {
    const path = "/v1/chat/completions/input_tokens";
    const seen = await model.look(path, { model: name, messages, tools });
    const parsed = Counted.safeParse(seen.ok ? seen.value : null);
    return parsed.success ? parsed.data.input_tokens : null;
  };
  const estimate = (messages: unknown, tools: unknown) =>
    Math.ceil(encodeUtf8(canonicalText([messages, tools])).length / 4);
  const all = stages(baseline);
  const counts: number[] = [];
  for (const { messages, tools } of state.ok && state.value === "loaded" ? all : []) {
    const tokens = await count(messages, tools);
    if (tokens === null) break;
    counts.push(tokens);
  }
  const byServer = counts.length === all.length;
  const totals = byServer ? counts : all.map((stage) => estimate(stage.messages, stage.tools));
  const lines = all.map((stage, i) => ({
    part: stage.part,
    tokens: Math.max(0, (totals[i] ?? 0) - (totals[i - 1] ?? 0)),
  }));
  return {
    lines,
    total: totals.at(-1) ?? 0,
    budget: BASELINE_BUDGET,
    counted_by: byServer ? "server" : "estimate",
  };
}
