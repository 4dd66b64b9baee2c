// Router mode over HTTP: requests go by the model they name, wait without a byte while it loads,
// and the model list, loading, unloading and the event stream have endpoints of their own.
import { invalid, serverError } from "./chat_request.ts";
import { refuse } from "./completion.ts";
import { type Call, handleModel, modelMeta, notFound } from "./endpoints.ts";
import { type Engine, type EngineParts, sleepEngine } from "./engine.ts";
import {
  createFleet,
  findModel,
  type Fleet,
  type FleetOptions,
  LIMIT_MESSAGE,
  load,
  makeRoom,
  type Model,
  ready,
  roomFreed,
  tell,
  unload,
  type Watcher,
} from "./fleet.ts";
import type { Exchange } from "./http_server.ts";
import { isObject, type JsonObject, textOf } from "./json_value.ts";
import { respondJson } from "./replies.ts";
import { COMMON_HEADERS } from "./sse_out.ts";

export type RouterOptions = FleetOptions & { readonly autoload: boolean };
type ModelCall = Omit<Call, "engine">;

export type Router = {
  handle(call: ModelCall): Promise<void>;
  engines(): Engine[];
  /** The model drops its weights but stays known as sleeping. */
  sleep(id: string): void;
  /** The child dies: running streams end in `proxy error`, the next request loads it again. */
  crash(id: string): void;
};

/** @param parts what every model's engine is made of; the name is replaced by each model's own */
export function createRouter(options: RouterOptions, parts: EngineParts): Router {
  const fleet = createFleet(options, parts);
  const known = (id: string): Model => {
    const model = findModel(fleet, id);
    if (model === undefined) throw new TypeError(`No such model in this router: ${id}`);
    return model;
  };
  return {
    handle: (call) => handleRouter(fleet, options, call),
    engines: () => fleet.models.flatMap((m) => m.engine ?? []),
    sleep: (id) => {
      const model = known(id);
      if (model.engine === null) return;
      sleepEngine(model.engine);
      tell(fleet, model, "status_change", { status: "sleeping" });
    },
    crash: (id) => {
      const model = known(id);
      model.failed = true;
      unload(fleet, model, 1);
    },
  };
}

async function handleRouter(fleet: Fleet, options: RouterOptions, call: ModelCall): Promise<void> {
  const { exchange } = call;
  const { method, path, query, body } = exchange.request;
  const named = isObject(body) ? textOf(body["model"]) : "";
  if (method === "GET" && await handleOwn(fleet, options, exchange)) return;
  if (method === "POST" && path === "/models/load") return await handleLoad(fleet, exchange, named);
  if (method === "POST" && path === "/models/unload") {
    return await handleUnload(fleet, exchange, named);
  }
  const name = method === "GET" ? query.get("model") ?? "" : named;
  if (name === "") return await refuse(exchange, invalid("model name is missing from the request"));
  const model = findModel(fleet, name);
  if (model === undefined) return await refuse(exchange, invalid(`model '${name}' not found`));
  return await pass(fleet, options, model, call);
}

/** The router's own pages; false when the path is not one of them. */
async function handleOwn(
  fleet: Fleet,
  options: RouterOptions,
  exchange: Exchange,
): Promise<boolean> {
  const { path, query } = exchange.request;
  if (path === "/health" || path === "/v1/health") {
    await respondJson(exchange, 200, { status: "ok" });
  } else if (path === "/models" || path === "/v1/models") {
    const data = fleet.models.map((model) => modelEntry(fleet, model));
    await respondJson(exchange, 200, { data, object: "list" });
  } else if (path === "/models/sse") {
    await serveWatcher(exchange, fleet);
  } else if (path === "/props" && !query.has("model")) {
    await respondJson(exchange, 200, routerProps(options, fleet.parts.options.buildInfo));
  } else return false;
  return true;
}

/** Hands the request to the model's engine, which is loaded first if the request may do that. */
async function pass(
  fleet: Fleet,
  options: RouterOptions,
  model: Model,
  call: ModelCall,
): Promise<void> {
  const { exchange } = call;
  const { path, query, method } = exchange.request;
  const autoload = query.get("autoload") ?? `${options.autoload}`;
  if (model.engine === null && autoload === "false") {
    return await refuse(exchange, invalid("model is not loaded"));
  }
  const staysAsleep = path === "/props" && model.engine?.state === "sleeping";
  model.inFlight++;
  const gone = AbortSignal.any([exchange.gone, fleet.parts.stopped]);
  const fault = staysAsleep ? null : await ready(fleet, model, gone);
  if (method === "POST") model.lastUsed = ++fleet.clock;
  const { engine } = model;
  if (fault !== null) await refuse(exchange, fault);
  else if (engine !== null) await handleModel({ ...call, engine });
  else await refuse(exchange, serverError(`model name=${model.id} failed to load`));
  model.inFlight--;
  if (model.inFlight === 0) roomFreed(fleet);
}

async function handleLoad(fleet: Fleet, exchange: Exchange, name: string): Promise<void> {
  const model = findModel(fleet, name);
  if (model === undefined) return await notFound(exchange);
  if (model.engine !== null && model.engine.state !== "sleeping") {
    return await refuse(exchange, invalid("model is already running"));
  }
  const isFull = model.engine === null && !makeRoom(fleet);
  if (isFull || fleet.parts.knobs().modelLimitReached) {
    return await refuse(exchange, serverError(LIMIT_MESSAGE));
  }
  void load(fleet, model);
  await respondJson(exchange, 200, { success: true });
}

async function handleUnload(fleet: Fleet, exchange: Exchange, name: string): Promise<void> {
  const model = findModel(fleet, name);
  if (model === undefined) return await refuse(exchange, invalid("model is not found"));
  if (model.engine === null) return await refuse(exchange, invalid("model is not running"));
  await respondJson(exchange, 200, { success: true });
  unload(fleet, model, 0);
}

function statusOf(model: Model): string {
  const state = model.engine?.state;
  if (state === undefined || state === "failed") return "unloaded";
  return state === "starting" || state === "waking" ? "loading" : state;
}

function modelEntry(fleet: Fleet, model: Model): JsonObject {
  const value = fleet.parts.knobs().unknownStatus ?? statusOf(model);
  const crash = model.failed ? { exit_code: 1, failed: true } : {};
  const isHere = statusOf(model) === "loaded" || statusOf(model) === "sleeping";
  return {
    id: model.id,
    aliases: model.aliases,
    tags: [],
    object: "model",
    owned_by: "llamacpp",
    created: Math.floor(Date.now() / 1000),
    status: { value, args: ["llama-server"], preset: `[${model.id}]\n`, ...crash },
    architecture: { input_modalities: ["text"], output_modalities: ["text"] },
    source: "preset",
    can_remove: false,
    ...(isHere && model.engine !== null ? { meta: modelMeta(model.engine) } : {}),
  };
}

function routerProps(options: RouterOptions, buildInfo: string): JsonObject {
  return {
    role: "router",
    max_instances: options.modelsMax,
    models_autoload: options.autoload,
    model_alias: "llama-server",
    model_path: "none",
    default_generation_settings: { params: null, n_ctx: 0 },
    ui_settings: {},
    build_info: buildInfo,
    cors_proxy_enabled: false,
  };
}

/** Holds `/models/sse` open: no initial state, then every change until either side leaves. */
async function serveWatcher(exchange: Exchange, fleet: Fleet): Promise<void> {
  await exchange.open(200, [["Content-Type", "text/event-stream"], ...COMMON_HEADERS]);
  const over = AbortSignal.any([exchange.gone, fleet.parts.stopped]);
  const encoder = new TextEncoder();
  const watch: Watcher = (event) => {
    void exchange.chunks([encoder.encode(`data: ${JSON.stringify(event)}\n\n`)]);
  };
  fleet.watchers.add(watch);
  await new Promise<void>((resolve) => {
    if (over.aborted) return resolve();
    over.addEventListener("abort", () => resolve(), { once: true });
  });
  fleet.watchers.delete(watch);
}
