// The models a router keeps: which are in memory, who may be evicted, who waits for room, and what
// `/models/sse` is told of it. A model that works or loads is never evicted for another.
import { type Fault, serverError } from "./chat_request.ts";
import { modelMeta } from "./endpoints.ts";
import { crashEngine, createEngine, type Engine, type EngineParts, loadEngine } from "./engine.ts";
import type { JsonObject } from "./json_value.ts";

export type FleetOptions = {
  readonly models: readonly { readonly id: string; readonly aliases: readonly string[] }[];
  /** 0 = no limit. */
  readonly modelsMax: number;
};

export type Model = {
  readonly id: string;
  readonly aliases: readonly string[];
  engine: Engine | null;
  failed: boolean;
  /** Requests that hold the model in memory. */
  inFlight: number;
  lastUsed: number;
};

export type Watcher = (event: JsonObject) => void;

export type Fleet = {
  readonly parts: EngineParts;
  readonly modelsMax: number;
  readonly models: readonly Model[];
  readonly watchers: Set<Watcher>;
  /** Requests waiting for a place in memory, first come first served. */
  readonly waiters: (() => void)[];
  clock: number;
};

export const LIMIT_MESSAGE = "model limit reached, try again later";
const LOADING = { stages: ["load"], current: "load", value: 0 };

export function createFleet(options: FleetOptions, parts: EngineParts): Fleet {
  const models = options.models.map(({ id, aliases }): Model => ({
    id,
    aliases,
    engine: null,
    failed: false,
    inFlight: 0,
    lastUsed: 0,
  }));
  const { modelsMax } = options;
  return { parts, modelsMax, models, watchers: new Set(), waiters: [], clock: 0 };
}

export function findModel(fleet: Fleet, name: string): Model | undefined {
  return fleet.models.find((m) => m.id === name || m.aliases.includes(name));
}

export function tell(fleet: Fleet, model: Model, event: string, data: JsonObject): void {
  for (const watch of fleet.watchers) watch({ model: model.id, event, data });
}

/** Takes the model out of memory; its running streams are cut. */
export function unload(fleet: Fleet, model: Model, exitCode: number): void {
  if (model.engine !== null) crashEngine(model.engine, { kind: "proxy" });
  model.engine = null;
  tell(fleet, model, "status_change", { status: "unloaded", exit_code: exitCode });
  roomFreed(fleet);
}

export function roomFreed(fleet: Fleet): void {
  fleet.waiters.shift()?.();
}

/** Unloads the idle model used longest ago if there is no place; false when none can go. */
export function makeRoom(fleet: Fleet): boolean {
  const held = fleet.models.filter((m) => m.engine !== null);
  if (fleet.modelsMax === 0 || held.length < fleet.modelsMax) return true;
  const idle = held.filter((m) => m.inFlight === 0 && m.engine?.loading === null);
  const oldest = idle.toSorted((a, b) => a.lastUsed - b.lastUsed)[0];
  if (oldest === undefined) return false;
  unload(fleet, oldest, 0);
  return true;
}

/** Loads or wakes the model; whether it came up. */
export async function load(fleet: Fleet, model: Model): Promise<boolean> {
  const { parts } = fleet;
  const isWake = model.engine !== null;
  const options = { ...parts.options, model: model.id };
  const engine = model.engine ?? createEngine({ ...parts, options });
  model.engine = engine;
  const starts = engine.loading === null;
  if (starts && !isWake) tell(fleet, model, "model_status", { status: "loading" });
  if (starts) tell(fleet, model, "status_change", { status: "loading", progress: LOADING });
  const isLoaded = await loadEngine(engine) === "loaded";
  if (!starts || model.engine !== engine) return isLoaded && model.engine === engine;
  model.failed = !isLoaded;
  const info = isWake ? {} : { info: { meta: modelMeta(engine) } };
  if (isLoaded) tell(fleet, model, "status_change", { status: "loaded", ...info });
  else unload(fleet, model, 1);
  return isLoaded;
}

/** Waits, without a byte to the client, until the model is in memory; null = it is. */
export async function ready(
  fleet: Fleet,
  model: Model,
  gone: AbortSignal,
): Promise<Fault | null> {
  if (model.engine?.state === "loaded") return null;
  if (fleet.parts.knobs().modelLimitReached) return serverError(LIMIT_MESSAGE);
  while (model.engine === null && !makeRoom(fleet)) {
    await roomOr(fleet, gone);
    if (!gone.aborted) continue;
    roomFreed(fleet);
    return serverError(`request cancelled while waiting for model name=${model.id}`);
  }
  const isLoaded = await load(fleet, model);
  return isLoaded ? null : serverError(`model name=${model.id} failed to load`);
}

function roomOr(fleet: Fleet, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    fleet.waiters.push(resolve);
    gone.addEventListener("abort", () => resolve(), { once: true });
  });
}
