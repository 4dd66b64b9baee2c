// One model being served: its slots, its running tasks and the state of its weights. A single-model
// server is one engine; a router keeps one per loaded model. Endpoints act on it, tests disturb it.
import type { Profile } from "./chat_request.ts";
import type { Knobs } from "./knobs.ts";
import { type Slot, type SlotPool, slotPool } from "./slots.ts";
import type { TemplateName } from "./templates.ts";
import type { Script } from "./turn.ts";
import { rest } from "./waiting.ts";

export type ModelOptions = {
  /** The server's own name for the model; requests are never echoed. */
  readonly model: string;
  readonly template: TemplateName;
  readonly keepThinking: "keep" | "drop";
  /** Context per slot, in tokens. */
  readonly nCtx: number;
  readonly slots: number;
  /** Tokens per prompt batch: the step of progress events. */
  readonly batch: number;
  /** `hybrid`: a prompt that does not extend the slot's tokens falls back to a checkpoint. */
  readonly cutting: "any" | "hybrid";
  readonly profile: Profile;
  readonly buildInfo: string;
  /** What one second of `sse_ping_interval` lasts, so that tests need not wait. */
  readonly pingUnitMs: number;
  /** Endpoints that are off by default on the real server too. */
  readonly metrics: boolean;
  readonly slotFiles: boolean;
  readonly slotList: boolean;
};

export type Interrupt =
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "proxy" }
  | { readonly kind: "reset" };

export type RunningTask = {
  readonly id: string;
  readonly reasoningControl: boolean;
  /** Set by the control endpoint; looked at between tokens. */
  endReasoning: boolean;
  interrupt: Interrupt | null;
  readonly wake: AbortController;
};

/** `starting`: the first load, when a single-model server answers 503 to everything. */
export type EngineState = "starting" | "loaded" | "sleeping" | "waking" | "failed";

export type Engine = {
  readonly options: ModelOptions;
  readonly pool: SlotPool;
  readonly running: Map<string, RunningTask>;
  readonly stuck: Set<{ readonly slot: Slot; readonly tokens: readonly number[] }>;
  readonly savedSlots: Map<string, readonly number[]>;
  readonly script: () => Script;
  readonly knobs: () => Knobs;
  /** 32 alphanumerics. */
  readonly newId: () => string;
  /** Aborts when the double stops. */
  readonly stopped: AbortSignal;
  state: EngineState;
  /** The load or wake-up under way. */
  loading: Promise<"loaded" | "failed"> | null;
  turns: number;
};

const FOR_EVER_MS = 0x7fffffff;

export type EngineParts = Pick<Engine, "options" | "script" | "knobs" | "newId" | "stopped">;

export function createEngine(parts: EngineParts): Engine {
  const { slots, cutting } = parts.options;
  return {
    ...parts,
    pool: slotPool(slots, cutting),
    running: new Map(),
    stuck: new Set(),
    savedSlots: new Map(),
    state: "loaded",
    loading: null,
    turns: 0,
  };
}

/** Loads or wakes the model as the knobs have it; one load at a time, whoever asks. */
export function loadEngine(engine: Engine): Promise<"loaded" | "failed"> {
  const load = async () => {
    const { loadMs, loadFails, loadNeverEnds } = engine.knobs();
    await rest(loadNeverEnds ? FOR_EVER_MS : loadMs, engine.stopped);
    const state = loadFails ? "failed" : "loaded";
    engine.state = state;
    engine.loading = null;
    return state;
  };
  if (engine.loading === null) {
    engine.state = engine.state === "sleeping" ? "waking" : "starting";
    engine.loading = load();
  }
  return engine.loading;
}

/** Drops weights and every cache; the next task wakes it. */
export function sleepEngine(engine: Engine): void {
  engine.pool.forgetAll();
  engine.state = "sleeping";
}

/** Ends every running task in its own way; null leaves those that already have one. */
export function interruptAll(engine: Engine, interrupt: Interrupt): void {
  for (const task of engine.running.values()) {
    task.interrupt ??= interrupt;
    task.wake.abort();
  }
}

/** The process dies: streams end as `interrupt` says and nothing cached survives. */
export function crashEngine(engine: Engine, interrupt: Interrupt): void {
  interruptAll(engine, interrupt);
  engine.pool.forgetAll();
}

/** Frees the slots that a `stuckSlot` knob kept busy. */
export function freeStuckSlots(engine: Engine): void {
  for (const { slot, tokens } of engine.stuck) engine.pool.release(slot, tokens);
  engine.stuck.clear();
}
