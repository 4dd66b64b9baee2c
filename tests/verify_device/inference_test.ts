// Guards: "a conversation with a tool against a real server and a real model: every request reuses
// exactly what is expected, also over restarts and a memory write". Needs the real model. This is the
// short form; `deno task verify-device` holds twenty turns.
import { ok as assert, strictEqual } from "node:assert";
import { hasRealLlama, REAL_LLAMA_MISSING, startRealLlama } from "../doubles/real_llama.ts";
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { call, say, type Script, speak } from "../doubles/llama/turn.ts";
import { checkTable } from "./checks.ts";
import { assertPassed, inferenceChecks, SMALL_MODEL } from "./inference.ts";

const IS_HERE = hasRealLlama();
const claim = "verify-device inference passes six turns against the real model";

Deno.test({
  name: IS_HERE ? claim : `${claim} (skipped: ${REAL_LLAMA_MISSING})`,
  ignore: !IS_HERE,
  fn: async () => {
    const real = await startRealLlama();
    assert(real !== null);
    try {
      const device = { host: "127.0.0.1", port: real.port, config: SMALL_MODEL };
      const checks = await inferenceChecks({ ...device, turns: 6 });
      console.log(checkTable(checks));
      assertPassed(checks);
    } finally {
      await real.stop();
    }
  },
});

Deno.test("verify-device inference fails a server that loses its cache, and one without tools", async () => {
  const script: Script = (request) => {
    const last = request.messages.at(-1);
    if (last?.content.includes("Call the tool clock")) return speak(call("clock", {}));
    if (last?.role === "tool") {
      return speak(say(last.content.slice(last.content.indexOf("\n") + 1)));
    }
    const path = /file (\S+) and/.exec(last?.content ?? "")?.[1];
    if (path === undefined) return speak(say("Hello. ".repeat(400)));
    return speak(call("call_tool", { name: "read_file", arguments: JSON.stringify({ path }) }));
  };
  const llama = await startLlamaDouble({ script, template: "qwen2.5" });
  try {
    const device = { host: "127.0.0.1", port: llama.port, config: {}, turns: 3 };
    assertPassed(await inferenceChecks(device));
    llama.set({ cache: "lost" });
    const lost = await inferenceChecks(device);
    const failed = lost.filter((one) => one.verdict === "fail").map((one) => one.check);
    assert(failed.includes("inference: cache-reuse"), failed.join());
    llama.calm();
    llama.set({ dropCalls: true });
    const toolless = await inferenceChecks(device);
    assert(toolless.some((one) => one.verdict === "fail"));
    strictEqual(checkTable(toolless).split("\n").length, toolless.length + 1);
  } finally {
    await llama.stop();
  }
});
