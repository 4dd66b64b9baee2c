// The llama-server double as a library: one server on a free loopback port, what it says, how it
// fails, and a record of everything it was asked.
import { seededRandom } from "../../../shared/clock/random.ts";
import type { Profile } from "./chat_request.ts";
import type { Conversations } from "./conversations.ts";
import { handleModel, unavailable } from "./endpoints.ts";
import {
  crashEngine,
  createEngine,
  type Engine,
  freeStuckSlots,
  interruptAll,
  loadEngine,
  type ModelOptions,
  sleepEngine,
} from "./engine.ts";
import { errorBody } from "./envelope.ts";
import { type Exchange, serveHttp } from "./http_server.ts";
import { AT_REST, CONTEXT_ERROR, type Knobs } from "./knobs.ts";
import { recordOf, type RequestRecord } from "./record.ts";
import { respondJson } from "./replies.ts";
import { createRouter, type Router, type RouterOptions } from "./router.ts";
import { tokenize } from "./tokens.ts";
import { say, type Script, speak } from "./turn.ts";

export type LlamaOptions = Partial<ModelOptions> & {
  /** 0 or absent = a free port. */
  readonly port?: number;
  readonly script?: Script;
  readonly knobs?: Partial<Knobs>;
  /** Asked for on all but the public paths of the profile; absent = open. */
  readonly apiKey?: string;
  /** Makes the server a router over these models. */
  readonly router?: Partial<RouterOptions> & Pick<RouterOptions, "models">;
  readonly seed?: number;
};

export type LlamaDouble = {
  readonly port: number;
  readonly url: string;
  /** Every request in order of arrival; entries fill in as answers go out. */
  readonly record: readonly RequestRecord[];
  /** Turns knobs for all later requests; those not named stay as they are. */
  set(knobs: Partial<Knobs>): void;
  /** Puts every knob at rest. */
  calm(): void;
  script(script: Script): void;
  /** "Context size has been exceeded." to every running stream. */
  exceedContext(): void;
  /** The model (or a router's model) drops its weights and caches until the next task. */
  sleep(model?: string): void;
  /** The process dies: streams are cut, caches are gone; it answers again at once. */
  crash(model?: string): void;
  /** Another client uses the slot for a prompt of its own. */
  takeSlot(slot: number): void;
  freeSlots(): void;
  /** Completions that wait for a slot. */
  waiting(): number;
  /** Cuts every connection; rejects with a script's own mistake. */
  stop(): Promise<void>;
};

export const DEFAULT_MODEL: ModelOptions = {
  model: "double",
  template: "qwen3.5",
  keepThinking: "drop",
  nCtx: 32_768,
  slots: 2,
  batch: 2048,
  cutting: "any",
  profile: "b10470",
  buildInfo: "b10470-34af94cd9",
  pingUnitMs: 1000,
  metrics: false,
  slotFiles: false,
  slotList: true,
};
const NEWER_BUILD = "b11434-5f0c1d2ab";
const ALPHANUMERICS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function modelOptions(options: LlamaOptions): ModelOptions {
  const newer: Partial<ModelOptions> = options.profile === "newer"
    ? { buildInfo: NEWER_BUILD, keepThinking: "keep" }
    : {};
  return { ...DEFAULT_MODEL, ...newer, ...options };
}

function idSource(seed: number): () => string {
  const random = seededRandom(seed);
  return () => [...random.bytes(32)].map((b) => ALPHANUMERICS[b % 62]).join("");
}

/** Starts a server; it is listening when the promise resolves. */
export function startLlamaDouble(options: LlamaOptions = {}): Promise<LlamaDouble> {
  let knobs: Knobs = { ...AT_REST, ...options.knobs };
  let script: Script = options.script ?? (() => speak(say("Hello.")));
  const stopping = new AbortController();
  const record: RequestRecord[] = [];
  const conversations: Conversations = new Map();
  const parts = {
    options: modelOptions(options),
    script: () => script,
    knobs: () => knobs,
    newId: idSource(options.seed ?? 1),
    stopped: stopping.signal,
  };
  const single = options.router === undefined ? createEngine(parts) : null;
  const router = options.router === undefined
    ? null
    : createRouter({ modelsMax: 4, autoload: true, ...options.router }, parts);
  const engines = () => single === null ? router?.engines() ?? [] : [single];

  const handle = async (exchange: Exchange): Promise<void> => {
    const entry = recordOf(exchange);
    record.push(entry);
    const call = { exchange, conversations, record: entry };
    if (!isAdmitted(exchange, options)) await respondJson(exchange, 401, WRONG_KEY);
    else if (router !== null) await router.handle(call);
    else if (single?.state === "starting") await unavailable(exchange);
    else if (single !== null) await handleModel({ ...call, engine: single });
    entry.closedMs = performance.now();
  };
  const server = serveHttp(options.port ?? 0, handle);
  if (single !== null && startsSlowly(knobs)) void loadEngine(single);
  return Promise.resolve({
    port: server.port,
    url: `http://127.0.0.1:${server.port}`,
    record,
    set: (changes) => {
      knobs = { ...knobs, ...changes };
    },
    calm: () => {
      knobs = AT_REST;
    },
    script: (next) => {
      script = next;
    },
    exceedContext: () => {
      for (const engine of engines()) {
        interruptAll(engine, { kind: "error", message: CONTEXT_ERROR });
      }
    },
    sleep: (model) => sleepOne(single, router, model),
    crash: (model) => crashOne(single, router, model),
    takeSlot: (slot) => takeSlot(engines(), slot),
    freeSlots: () => engines().forEach(freeStuckSlots),
    waiting: () => engines().reduce((sum, engine) => sum + engine.pool.waiting(), 0),
    stop: async () => {
      stopping.abort();
      await server.stop();
    },
  });
}

const startsSlowly = (k: Knobs) => k.loadMs > 0 || k.loadNeverEnds || k.loadFails;

const WRONG_KEY = errorBody({
  status: 401,
  type: "authentication_error",
  message: "Invalid API Key",
});

function isAdmitted(exchange: Exchange, options: LlamaOptions): boolean {
  const { path, headers } = exchange.request;
  const open = profilePaths(options.profile ?? "b10470");
  if (options.apiKey === undefined || open.includes(path)) return true;
  return headers.get("authorization") === `Bearer ${options.apiKey}` ||
    headers.get("x-api-key") === options.apiKey;
}

function profilePaths(profile: Profile): string[] {
  const always = ["/health", "/v1/health"];
  return profile === "newer" ? always : [...always, "/models", "/v1/models"];
}

function sleepOne(single: Engine | null, router: Router | null, model: string | undefined): void {
  if (single !== null) sleepEngine(single);
  else router?.sleep(model ?? "");
}

function crashOne(single: Engine | null, router: Router | null, model: string | undefined): void {
  if (single !== null) crashEngine(single, { kind: "reset" });
  else router?.crash(model ?? "");
}

function takeSlot(engines: readonly Engine[], slot: number): void {
  const taken = engines[0]?.pool.slots[slot];
  if (taken === undefined) throw new TypeError(`No such slot in this double: ${slot}`);
  taken.tokens = tokenize("<|im_start|>user\nsomeone else's question<|im_end|>\n");
  taken.checkpoints = [];
}
