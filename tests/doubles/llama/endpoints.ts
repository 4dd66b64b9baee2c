// Every endpoint of one model but the completion itself: what the server says of itself, counting
// and rendering, slots, control, resumable streams. Shared by the single-model server and the router.
import { complete, prepare, refuse } from "./completion.ts";
import { invalid } from "./chat_request.ts";
import { type Conversations, follow, lookup } from "./conversations.ts";
import { type Engine, loadEngine } from "./engine.ts";
import { errorBody } from "./envelope.ts";
import type { Exchange } from "./http_server.ts";
import { isObject, type JsonObject, listOf, numberOf, textOf } from "./json_value.ts";
import type { RequestRecord } from "./record.ts";
import { respondJson, respondText } from "./replies.ts";
import type { Slot } from "./slots.ts";
import { STREAM_HEADERS } from "./sse_out.ts";
import { capabilities, templateSource } from "./templates.ts";
import { bytesOfToken, detokenize, tokenize } from "./tokens.ts";

export type Call = {
  readonly engine: Engine;
  readonly exchange: Exchange;
  readonly conversations: Conversations;
  readonly record: RequestRecord;
};

export const notFound = (exchange: Exchange) =>
  respondJson(
    exchange,
    404,
    errorBody({ status: 404, type: "not_found_error", message: "File Not Found" }),
  );
const notSupported = (exchange: Exchange, message: string) =>
  respondJson(exchange, 501, errorBody({ status: 501, type: "not_supported_error", message }));
export const unavailable = (exchange: Exchange) =>
  respondJson(
    exchange,
    503,
    errorBody({ status: 503, type: "unavailable_error", message: "Loading model" }),
  );

/** The endpoints that need the weights, and so wake a sleeping model. */
const TASKS = [
  "/v1/chat/completions",
  "/chat/completions",
  "/v1/chat/completions/input_tokens",
  "/v1/responses/input_tokens",
  "/v1/messages/count_tokens",
  "/apply-template",
  "/tokenize",
  "/detokenize",
];

export function needsModel(method: string, path: string, engine: Engine): boolean {
  if (path.startsWith("/slots")) return true;
  if (path === "/metrics") return engine.options.profile === "b10470";
  return method === "POST" && TASKS.includes(path);
}

/** Answers one request to one model; wakes it first where the endpoint needs it. */
export async function handleModel(call: Call): Promise<void> {
  const { engine, exchange } = call;
  const { method, path } = exchange.request;
  const isAway = engine.state === "sleeping" || engine.state === "waking";
  if (isAway && needsModel(method, path, engine)) {
    if (await loadEngine(engine) === "failed") {
      const message = "failed to load the model";
      return await respondJson(
        exchange,
        500,
        errorBody({ status: 500, type: "server_error", message }),
      );
    }
  }
  if (path.startsWith("/v1/stream")) return await handleStream(call);
  return method === "GET" ? await handleGet(call) : await handlePost(call);
}

async function handleGet(call: Call): Promise<void> {
  const { engine, exchange } = call;
  switch (exchange.request.path) {
    case "/health":
    case "/v1/health":
      return await respondJson(exchange, 200, { status: "ok" });
    case "/props":
      return await respondJson(exchange, 200, props(engine));
    case "/slots":
      return await handleSlots(engine, exchange);
    case "/models":
    case "/v1/models":
      return await respondJson(exchange, 200, modelList(engine));
    case "/metrics":
      if (!engine.options.metrics) return await notSupported(exchange, "metrics are disabled");
      return await respondText(exchange, 200, metrics(engine));
    default:
      return await notFound(exchange);
  }
}

async function handlePost(call: Call): Promise<void> {
  const { engine, exchange } = call;
  const { path, body } = exchange.request;
  const object = isObject(body) ? body : {};
  switch (path) {
    case "/v1/chat/completions":
    case "/chat/completions":
      return await complete(engine, exchange, call.conversations, call.record);
    case "/v1/chat/completions/control":
      return await handleControl(engine, exchange, object);
    case "/v1/chat/completions/input_tokens":
    case "/v1/responses/input_tokens":
    case "/v1/messages/count_tokens":
    case "/apply-template":
      return await handlePrompt(engine, exchange);
    case "/tokenize":
      return await respondJson(exchange, 200, { tokens: tokenList(object) });
    case "/detokenize": {
      const ids = listOf(object["tokens"]).map((id) => numberOf(id, 0));
      return await respondJson(exchange, 200, { content: detokenize(ids) });
    }
    case "/props":
      return await notSupported(exchange, "changing the properties is disabled");
    default:
      if (path.startsWith("/slots/")) return await handleSlotAction(engine, exchange);
      return await notFound(exchange);
  }
}

async function handlePrompt(engine: Engine, exchange: Exchange): Promise<void> {
  const prepared = prepare(engine, exchange.request.bodyText);
  if (!prepared.ok) return await refuse(exchange, prepared);
  const { prompt, tokens } = prepared.value;
  const { path } = exchange.request;
  if (path === "/apply-template") return await respondJson(exchange, 200, { prompt: prompt.text });
  const object = path.startsWith("/v1/messages") ? {} : { object: "response.input_tokens" };
  return await respondJson(exchange, 200, { input_tokens: tokens.length, ...object });
}

function tokenList(body: JsonObject): unknown[] {
  const parsing = body["parse_special"] === false ? "tags-only" : "control-and-tags";
  const ids = tokenize(textOf(body["content"]), parsing);
  if (body["with_pieces"] !== true) return ids;
  return ids.map((id) => {
    const bytes = bytesOfToken(id);
    const text = detokenize([id]);
    const isText = detokenize(tokenize(text)) === text && !text.includes("\ufffd");
    return { id, piece: isText ? text : [...bytes] };
  });
}

async function handleControl(engine: Engine, exchange: Exchange, body: JsonObject): Promise<void> {
  const id = textOf(body["id"]);
  if (id === "") return await refuse(exchange, invalid("missing completion id"));
  if (body["action"] !== "reasoning_end") {
    return await refuse(exchange, invalid("unknown control action"));
  }
  const task = engine.running.get(id);
  if (task === undefined) {
    const message = "no active completion for this id";
    return await respondJson(exchange, 200, { success: false, message });
  }
  if (!task.reasoningControl) {
    const message = "reasoning control not enabled for this completion";
    return await respondJson(exchange, 200, { success: false, message });
  }
  task.endReasoning = true;
  return await respondJson(exchange, 200, { success: true });
}

/** The sampling defaults a server shows. */
const SAMPLING: JsonObject = {
  seed: 4_294_967_295,
  temperature: 0.8,
  top_k: 40,
  top_p: 0.95,
  min_p: 0.05,
  typical_p: 1,
  repeat_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  max_tokens: -1,
  n_predict: -1,
  stream: false,
  samplers: ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "temperature"],
};

function props(engine: Engine): JsonObject {
  const { options } = engine;
  const knobs = engine.knobs();
  return {
    default_generation_settings: { params: SAMPLING, n_ctx: knobs.nCtx ?? options.nCtx },
    total_slots: knobs.totalSlots ?? options.slots,
    model_alias: options.model,
    model_ftype: "F16",
    model_path: `models/${options.model}.gguf`,
    modalities: { vision: false, video: false, audio: false },
    media_marker: "<__media__>",
    endpoint_slots: options.slotList,
    endpoint_props: false,
    endpoint_metrics: options.metrics,
    ui: true,
    ui_settings: {},
    chat_template: knobs.chatTemplate ?? templateSource(options.template),
    chat_template_caps: capabilities(options.template),
    bos_token: "<|endoftext|>",
    eos_token: "<|im_end|>",
    build_info: knobs.buildInfo ?? options.buildInfo,
    is_sleeping: engine.state === "sleeping",
    cors_proxy_enabled: false,
  };
}

export function modelMeta(engine: Engine): JsonObject {
  const { nCtx } = engine.options;
  return {
    vocab_type: 2,
    n_vocab: 50_266,
    n_ctx: nCtx,
    n_ctx_train: nCtx,
    n_embd: 32,
    n_params: 1,
    size: 1,
    ftype: "F16",
  };
}

/** One model in the server's own form and in that of another program it stands in for. */
function modelList(engine: Engine): JsonObject {
  const { model } = engine.options;
  const other = { name: model, model, type: "model", tags: [""], capabilities: ["completion"] };
  return { models: [other], object: "list", data: [modelEntry(engine)] };
}

function modelEntry(engine: Engine): JsonObject {
  return {
    id: engine.options.model,
    aliases: [engine.options.model],
    architecture: { input_modalities: ["text"], output_modalities: ["text"] },
    tags: [],
    object: "model",
    created: Math.floor(Date.now() / 1000),
    owned_by: "llamacpp",
    meta: modelMeta(engine),
  };
}

async function handleSlots(engine: Engine, exchange: Exchange): Promise<void> {
  if (!engine.options.slotList) return await notSupported(exchange, "slots are disabled");
  const { slots } = engine.pool;
  const wanted = exchange.request.query.get("fail_on_no_slot") === "1";
  if (wanted && slots.every((s) => s.busy)) {
    const message = "no slot available";
    const body = errorBody({ status: 503, type: "unavailable_error", message });
    return await respondJson(exchange, 503, body);
  }
  const count = engine.knobs().totalSlots ?? slots.length;
  const shown = slots.slice(0, count).map((slot) => slotEntry(engine, slot));
  return await respondJson(exchange, 200, shown);
}

function slotEntry(engine: Engine, slot: Slot): JsonObject {
  const nCtx = engine.knobs().nCtx ?? engine.options.nCtx;
  const fresh = { id: slot.id, n_ctx: nCtx, speculative: false, is_processing: slot.busy };
  if (!slot.started) return fresh;
  const { task } = slot;
  const inSlot = slot.busy ? task.cached + task.processed + task.decoded : slot.tokens.length;
  return {
    ...fresh,
    id_task: task.id,
    n_prompt_tokens: inSlot,
    n_prompt_tokens_processed: task.processed,
    n_prompt_tokens_cache: task.cached,
    params: { ...SAMPLING, chat_format: "peg-native", reasoning_format: "deepseek" },
    next_token: [{
      has_next_token: slot.busy,
      has_new_line: false,
      n_remain: slot.busy ? task.limit - task.decoded : -1,
      n_decoded: task.decoded,
    }],
  };
}

async function handleSlotAction(engine: Engine, exchange: Exchange): Promise<void> {
  const { path, query, body } = exchange.request;
  if (!engine.options.slotFiles) return await notSupported(exchange, "slot files are disabled");
  const { slots } = engine.pool;
  const id = Number(path.slice("/slots/".length)) % slots.length;
  const slot = slots[id];
  const action = query.get("action") ?? "";
  if (slot === undefined || !["save", "restore", "erase"].includes(action)) {
    return await refuse(exchange, invalid("Invalid action"));
  }
  if (action === "erase") {
    const erased = slot.tokens.length;
    slot.tokens = [];
    slot.checkpoints = [];
    return await respondJson(exchange, 200, { id_slot: id, n_erased: erased });
  }
  const filename = isObject(body) ? textOf(body["filename"]) : "";
  if (filename === "" || filename.includes("/")) {
    return await refuse(exchange, invalid("Invalid filename"));
  }
  return await moveSlot(engine, exchange, slot, action, filename);
}

async function moveSlot(
  engine: Engine,
  exchange: Exchange,
  slot: Slot,
  action: string,
  filename: string,
): Promise<void> {
  const base = { id_slot: slot.id, filename };
  if (action === "save") {
    engine.savedSlots.set(filename, slot.tokens);
    const n = slot.tokens.length;
    const more = { n_saved: n, n_written: n * 4, timings: { save_ms: 0.1 } };
    return await respondJson(exchange, 200, { ...base, ...more });
  }
  const saved = engine.savedSlots.get(filename);
  if (saved === undefined) return await refuse(exchange, invalid("Unable to restore slot"));
  slot.tokens = saved;
  const more = {
    n_restored: saved.length,
    n_read: saved.length * 4,
    timings: { restore_ms: 0.1 },
  };
  return await respondJson(exchange, 200, { ...base, ...more });
}

function metrics(engine: Engine): string {
  return [
    "# TYPE llamacpp:requests_processing gauge",
    `llamacpp:requests_processing ${engine.running.size}`,
    "# TYPE llamacpp:requests_deferred gauge",
    `llamacpp:requests_deferred ${engine.pool.waiting()}`,
    "",
  ].join("\n");
}

async function handleStream({ exchange, conversations }: Call): Promise<void> {
  const { path, method, query, body } = exchange.request;
  if (path === "/v1/streams/lookup" && method === "POST") {
    const ids = isObject(body) ? listOf(body["conversation_ids"]) : [];
    return await respondJson(exchange, 200, lookup(conversations, ids));
  }
  const found = conversations.get(query.get("conv_id") ?? "");
  if (path !== "/v1/stream" || found === undefined) return await notFound(exchange);
  if (method === "DELETE") {
    found.cancel.abort();
    conversations.delete(found.id);
    return await exchange.respond(204, [], "");
  }
  await exchange.open(200, STREAM_HEADERS);
  const from = Number(query.get("from") ?? "0");
  for await (const piece of follow(found, from, exchange.gone)) await exchange.chunks([piece]);
  await exchange.end();
}
