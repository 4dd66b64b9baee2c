// Guards router mode and everything about loading, sleeping and dying models.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import { type LlamaDouble, startLlamaDouble } from "./double.ts";
import { isObject, type JsonObject, listOf } from "./json_value.ts";
import { ask, events, json, openAsk, openRaw, raw, said } from "./raw_client.ts";
import { pause, say, speak, waitFor } from "./turn.ts";

const MODELS = [{ id: "one", aliases: ["main"] }, { id: "two", aliases: [] }];
const body = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: "user", content: "hello" }],
  stream: true,
  chat_template_kwargs: { enable_thinking: false },
  ...more,
});

async function statuses(double: LlamaDouble): Promise<unknown[]> {
  const { data } = await json(double.port, "GET", "/models");
  return listOf(data).map((m) =>
    isObject(m) && isObject(m["status"]) ? m["status"]["value"] : null
  );
}

async function untilStatus(double: LlamaDouble, wanted: readonly string[]): Promise<void> {
  while (JSON.stringify(await statuses(double)) !== JSON.stringify(wanted)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function post(double: LlamaDouble, path: string, model: string): Promise<[number, string]> {
  const answer = await raw(double.port, "POST", path, { model });
  return [answer.status, answer.text];
}

Deno.test("createRouter() refuses what it cannot route", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ router: { models: MODELS, autoload: false } });
  cleanup.defer(() => double.stop());
  const refused = async (model: unknown) => {
    const answer = await ask(double.port, { ...body("x"), model });
    return [answer.status, JSON.parse(answer.text).error.message];
  };
  deepStrictEqual(await refused(undefined), [400, "model name is missing from the request"]);
  deepStrictEqual(await refused("zzz"), [400, "model 'zzz' not found"]);
  deepStrictEqual(await refused("one"), [400, "model is not loaded"]);
  strictEqual(
    (await raw(double.port, "POST", "/tokenize?model=one", { content: "x" })).status,
    400,
  );
  strictEqual((await post(double, "/models/load", "zzz"))[0], 404);
  match((await post(double, "/models/unload", "zzz"))[1], /model is not found/);
  match((await post(double, "/models/unload", "one"))[1], /model is not running/);
  strictEqual((await raw(double.port, "GET", "/props?model=one&autoload=false")).status, 400);
  deepStrictEqual(await statuses(double), ["unloaded", "unloaded"]);
});

Deno.test("createRouter() loads on demand, silently, and tells its watchers", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ router: { models: MODELS }, knobs: { loadMs: 400 } });
  cleanup.defer(() => double.stop());
  const watch = await openRaw(double.port, "GET", "/models/sse", undefined);
  await watch.seen("text/event-stream");
  const stream = await openAsk(double.port, body("main", { sse_ping_interval: 1 }));
  await untilStatus(double, ["loading", "unloaded"]);
  strictEqual(stream.hasBytes(), false);
  const answer = await stream.answer();
  strictEqual(events(answer.text)[0]?.["model"], "one");
  deepStrictEqual(await statuses(double), ["loaded", "unloaded"]);
  match((await post(double, "/models/load", "one"))[1], /already running/);
  deepStrictEqual(await post(double, "/models/unload", "one"), [200, '{"success":true}']);
  await watch.seen('"unloaded"');
  watch.leave();
  const told = events((await watch.answer()).text).map((e) => isObject(e["data"]) ? e["data"] : {});
  deepStrictEqual(told.map((d) => d["status"]), ["loading", "loading", "loaded", "unloaded"]);
  const props = await json(double.port, "GET", "/props");
  strictEqual(props["role"], "router");
});

Deno.test("createRouter() evicts an idle model, never a busy one", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gate = Promise.withResolvers<void>();
  const double = await startLlamaDouble({
    router: { models: MODELS, modelsMax: 1 },
    script: (_request, state) =>
      state.model === "one" ? speak(say("a"), waitFor(gate.promise)) : speak(say("b")),
  });
  cleanup.defer(() => double.stop());
  const busy = await openAsk(double.port, body("one"));
  await busy.seen('"content":"a"');
  deepStrictEqual((await post(double, "/models/load", "two"))[0], 500);
  const waiting = await openAsk(double.port, body("two"));
  await new Promise((resolve) => setTimeout(resolve, 10));
  strictEqual(waiting.hasBytes(), false);
  deepStrictEqual(await statuses(double), ["loaded", "unloaded"]);
  gate.resolve();
  strictEqual(said((await busy.answer()).text).done, true);
  strictEqual(said((await waiting.answer()).text).content, "b");
  deepStrictEqual(await statuses(double), ["unloaded", "loaded"]);
});

Deno.test("createRouter() cuts the streams of a model that dies or is unloaded", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    router: { models: MODELS },
    script: () => speak(say("a"), pause(60_000)),
  });
  cleanup.defer(() => double.stop());
  for (const end of ["crash", "unload"] as const) {
    const stream = await openAsk(double.port, body("one"));
    await stream.seen('"content":"a"');
    if (end === "crash") double.crash("one");
    else await post(double, "/models/unload", "one");
    const { text, ending } = await stream.answer();
    assert(text.endsWith("\n\nproxy error: Failed to read connection"));
    strictEqual(ending, "clean");
    await untilStatus(double, ["unloaded", "unloaded"]);
  }
});

Deno.test("sleep() drops the cache; slots and tasks wake the model, props do not", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ router: { models: MODELS } });
  cleanup.defer(() => double.stop());
  const cacheN = async () => said((await ask(double.port, body("one"))).text).timings["cache_n"];
  await cacheN();
  assert(Number(await cacheN()) > 0);
  double.sleep("one");
  strictEqual((await json(double.port, "GET", "/props?model=one"))["is_sleeping"], true);
  deepStrictEqual(await statuses(double), ["sleeping", "unloaded"]);
  strictEqual((await raw(double.port, "GET", "/slots?model=one&autoload=false")).status, 200);
  deepStrictEqual(await statuses(double), ["loaded", "unloaded"]);
  double.sleep("one");
  strictEqual(await cacheN(), 0);
  double.sleep("one");
  double.set({ loadFails: true });
  const failed = await ask(double.port, body("one"));
  deepStrictEqual([failed.status, JSON.parse(failed.text).error.message], [
    500,
    "model name=one failed to load",
  ]);
});

Deno.test("sleep() of a single model ends with its next task, not with a look at it", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  const isSleeping = async () => (await json(double.port, "GET", "/props"))["is_sleeping"];
  await ask(double.port, body("x"));
  for (const path of ["/slots", "/tokenize"]) {
    double.sleep();
    await raw(double.port, "GET", "/health");
    strictEqual(await isSleeping(), true);
    await raw(double.port, path === "/slots" ? "GET" : "POST", path, { content: "x" });
    strictEqual(await isSleeping(), false);
  }
  strictEqual(said((await ask(double.port, body("x"))).text).timings["cache_n"], 0);
});

Deno.test("Knobs make loading fail, hang, or meet the limit", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ router: { models: MODELS }, knobs: { loadFails: true } });
  cleanup.defer(() => double.stop());
  strictEqual((await ask(double.port, body("one"))).status, 500);
  const failed = listOf((await json(double.port, "GET", "/models"))["data"])[0];
  const status: JsonObject = isObject(failed) && isObject(failed["status"]) ? failed["status"] : {};
  deepStrictEqual([status["value"], status["failed"], status["exit_code"]], ["unloaded", true, 1]);
  double.calm();
  strictEqual((await ask(double.port, body("one"))).status, 200);
  double.set({ modelLimitReached: true });
  match((await ask(double.port, body("two"))).text, /model limit reached, try again later/);
  double.set({ modelLimitReached: false, loadNeverEnds: true, unknownStatus: "pondering" });
  const stuck = await openAsk(double.port, body("two"));
  deepStrictEqual(await statuses(double), ["pondering", "pondering"]);
  await new Promise((resolve) => setTimeout(resolve, 10));
  strictEqual(stuck.hasBytes(), false);
  stuck.leave();
});

Deno.test("startLlamaDouble() answers 503 to everything while its one model loads", async () => {
  await using cleanup = new AsyncDisposableStack();
  const stuck = await startLlamaDouble({ knobs: { loadNeverEnds: true } });
  cleanup.defer(() => stuck.stop());
  for (const path of ["/health", "/props"]) {
    const answer = await raw(stuck.port, "GET", path);
    deepStrictEqual([answer.status, JSON.parse(answer.text).error.message], [503, "Loading model"]);
  }
  const slow = await startLlamaDouble({ knobs: { loadMs: 1 } });
  cleanup.defer(() => slow.stop());
  while ((await raw(slow.port, "GET", "/health")).status !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
});

Deno.test("handleModel() serves the small endpoints", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ slots: 1, slotFiles: true, metrics: true });
  cleanup.defer(() => double.stop());
  const bare = await startLlamaDouble({ slotList: false });
  cleanup.defer(() => bare.stop());
  for (const [method, path] of [["GET", "/metrics"], ["GET", "/slots"], ["POST", "/props"]]) {
    strictEqual((await raw(bare.port, method ?? "", path ?? "")).status, 501);
  }
  strictEqual((await raw(bare.port, "POST", "/slots/0?action=erase")).status, 501);
  match((await raw(bare.port, "GET", "/nothing")).text, /"File Not Found"/);
  match((await raw(double.port, "GET", "/metrics")).text, /requests_processing 0/);
  const pieces = await json(double.port, "POST", "/tokenize", {
    content: "Hi 😀<|im_end|>",
    with_pieces: true,
  });
  const shown = listOf(pieces["tokens"]).map((t) => isObject(t) ? t["piece"] : null);
  deepStrictEqual(shown, ["Hi", " ", [240, 159], [152, 128], "<|im_end|>"]);
  const plain = await json(double.port, "POST", "/tokenize", {
    content: "<|im_end|><think>",
    parse_special: false,
  });
  assert(listOf(plain["tokens"]).length > 2);
  const ids = listOf(plain["tokens"]);
  const back = await json(double.port, "POST", "/detokenize", { tokens: ids });
  strictEqual(back["content"], "<|im_end|><think>");
  const slot = async (action: string, more: object = {}) => {
    const answer = await raw(double.port, "POST", `/slots/0?action=${action}`, more);
    return [answer.status, Object.keys(JSON.parse(answer.text))];
  };
  await ask(double.port, body("x"));
  deepStrictEqual((await slot("save", { filename: "a.bin" }))[0], 200);
  deepStrictEqual(await slot("erase"), [200, ["id_slot", "n_erased"]]);
  deepStrictEqual((await slot("restore", { filename: "a.bin" }))[0], 200);
  assert(Number(said((await ask(double.port, body("x"))).text).timings["cache_n"]) > 0);
  deepStrictEqual((await slot("save", { filename: "../a" }))[0], 400);
  deepStrictEqual((await slot("eat"))[0], 400);
  const full = await openAsk(double.port, body("x"));
  await full.answer();
  strictEqual((await raw(double.port, "GET", "/slots?fail_on_no_slot=1")).status, 200);
});
