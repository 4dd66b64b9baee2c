// Guards: "one grammar on every socket", from the asking side: whatever a peer answers that the exchange does
// not allow is a failure with a code, and none of it reaches the caller as an event or a reply.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { z } from "zod";
import { sha256Hex } from "../tool/digest.ts";
import { encodeCanonical, encodeUtf8, toBase64 } from "./codec.ts";
import { call } from "./dial.ts";
import { exchange, message } from "./exchange.ts";

const ASK = exchange({
  request: message("ask", {}),
  events: [message("step", { n: z.int() })],
  replies: [message("told", { text: z.string().max(9) })],
  downloadMaxBytes: 8,
});

/** Answers one caller with these frames and closes; gives what the caller made of it. */
async function answered(frames: readonly (object | Uint8Array)[]) {
  const folder = Deno.makeTempDirSync({ prefix: "bx" });
  const path = `${folder}/s.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const serving = (async () => {
    const conn = await listener.accept();
    await conn.read(new Uint8Array(1_000));
    for (const frame of frames) {
      const body = frame instanceof Uint8Array ? frame : encodeCanonical(frame);
      const bytes = new Uint8Array(4 + body.length);
      new DataView(bytes.buffer).setUint32(0, body.length);
      bytes.set(body, 4);
      // A caller that has seen enough is gone.
      await conn.write(bytes).catch(() => 0);
    }
    conn.close();
  })();
  const seen: unknown[] = [];
  const reply = await call(path, ASK, {}, {
    onEvent: (event) => void seen.push(event.body.n),
    onChunk: (bytes) => void seen.push(new TextDecoder().decode(bytes)),
  });
  await serving;
  listener.close();
  Deno.removeSync(folder, { recursive: true });
  return { code: reply.ok ? "ok" : reply.code, detail: reply.ok ? "" : reply.detail, seen };
}

const frame = (kind: string, body: unknown, v = 1) => ({ v, kind, body });
const step = (n: unknown) => frame("step", { n });
const chunk = (seq: number, text: string) =>
  frame("chunk", { seq, base64: toBase64(encodeUtf8(text)) });
const end = (text: string) =>
  frame("chunk_end", { bytes: text.length, sha256: sha256Hex(encodeUtf8(text)) });
const told = frame("told", { text: "yes" });
const refused = (code: string) => frame("error", { code, message: "m", detail: "d" });

Deno.test("call() takes nothing from a peer that the exchange does not allow", async () => {
  const cases: readonly (readonly [readonly (object | Uint8Array)[], string, unknown[]])[] = [
    [[], "frame-closed", []],
    [[step(1)], "frame-closed", [1]],
    [[encodeUtf8("{")], "frame-malformed", []],
    [[encodeUtf8('{"v":1, "kind":"told","body":{"text":"yes"}}')], "frame-malformed", []],
    [[{ ...told, more: 1 }], "frame-malformed", []],
    [[frame("told", { text: "yes" }, 2)], "version-skew", []],
    [[frame("told", { text: "yes", more: 1 })], "frame-malformed", []],
    [[frame("told", { text: "0123456789" })], "frame-malformed", []],
    [[frame("other", {})], "frame-malformed", []],
    [[step("1"), told], "frame-malformed", []],
    [[chunk(0, "ab"), told], "frame-malformed", ["ab"]],
    [[chunk(1, "ab"), end("ab"), told], "frame-malformed", []],
    [[chunk(0, "ab"), chunk(0, "ab"), end("abab"), told], "frame-malformed", ["ab"]],
    [[chunk(0, "ab"), end("abc"), told], "frame-malformed", ["ab"]],
    [[chunk(0, ""), end(""), told], "frame-malformed", []],
    [[chunk(0, "ab"), end("ab"), chunk(1, "c"), told], "frame-malformed", ["ab"]],
    [[chunk(0, "012345678"), end("012345678"), told], "frame-too-large", []],
    [[frame("chunk", { seq: 0, base64: "YWJ" })], "frame-malformed", []],
    [[frame("error", { code: 7 })], "frame-malformed", []],
    [[refused("not-of-this-house")], "version-skew", []],
    [[refused("not-found"), told], "not-found", []],
  ];
  for (const [frames, code, seen] of cases) {
    const got = await answered(frames);
    strictEqual(got.code, code, `${JSON.stringify(frames)}: ${got.detail}`);
    deepStrictEqual(got.seen, seen, JSON.stringify(frames));
    isTrue(got.detail.length < 1_000);
  }
  const good = [frame("keepalive", {}), step(1), chunk(0, "ab"), step(2), end("ab"), told, step(3)];
  deepStrictEqual(await answered(good), { code: "ok", detail: "", seen: [1, "ab", 2] });
});
