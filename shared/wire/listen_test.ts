// Guards: "every socket accepts its own list of kinds and nothing else; one request, then events,
// then exactly one reply; a malformed peer harms nobody else".
import { deepStrictEqual, strictEqual } from "node:assert";
import { z } from "zod";
import { err, ok } from "../results/result.ts";
import { joinBytes } from "./chunks.ts";
import { canonicalText, encodeUtf8, toBase64 } from "./codec.ts";
import { call } from "./dial.ts";
import { exchange, message } from "./exchange.ts";
import { readFrame } from "./frame.ts";
import { MAX_CHUNK_BYTES, MAX_FRAME_BYTES } from "./limits.ts";
import { listen, on } from "./listen.ts";

const ECHO = exchange({
  request: message("echo", { word: z.string().max(10), times: z.int().min(0) }),
  events: [message("tick", { n: z.int() })],
  replies: [message("echoed", { words: z.string() })],
});
const COPY = exchange({
  request: message("copy", {}),
  replies: [message("copied", { bytes: z.int() })],
  uploadMaxBytes: 1_000_000,
  downloadMaxBytes: 1_000_000,
});
const WAIT = exchange({
  request: message("wait", {}),
  replies: [message("waited", {})],
});
const STRANGER = exchange({
  request: message("stranger", {}),
  replies: [message("echoed", { words: z.string() })],
});

interface Rig extends AsyncDisposable {
  readonly path: string;
  readonly lines: string[];
  aborted(): number;
  close(): Promise<void>;
}

async function rig(maxConnections = 32, waitMs = 300): Promise<Rig> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/x.sock`;
  const lines: string[] = [];
  let aborts = 0;
  const server = listen({
    path,
    log: (line) => lines.push(line),
    maxConnections,
    limits: { firstByteMs: waitMs, frameMs: waitMs },
    routes: [
      on(ECHO, async (body, io) => {
        for (let n = 0; n < body.times; n++) await io.event({ kind: "tick", body: { n } });
        if (body.word === "refuse") return err("not-found", "No such word");
        if (body.word === "throw") throw new Error("a bug");
        if (body.word === "long") return err("not-found", "x" + "😀".repeat(3_000));
        return ok({ kind: "echoed", body: { words: body.word.repeat(body.times) } });
      }),
      on(COPY, async (_body, io) => {
        await io.chunk(io.upload);
        return ok({ kind: "copied", body: { bytes: io.upload.length } });
      }),
      on(WAIT, async (_body, io) => {
        await new Promise<void>((resolve) => io.signal.addEventListener("abort", () => resolve()));
        aborts++;
        return ok({ kind: "waited", body: {} });
      }),
    ],
  });
  let closing: Promise<void> | undefined;
  const close = () => closing ??= server.close();
  return {
    path,
    lines,
    aborted: () => aborts,
    close,
    async [Symbol.asyncDispose]() {
      await close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function frameOf(text: string): Uint8Array {
  const body = encodeUtf8(text);
  const bytes = new Uint8Array(4 + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, 4);
  return bytes;
}

const GOOD = canonicalText({ v: 1, kind: "echo", body: { word: "a", times: 2 } });

/** Sends raw bytes and returns every frame that comes back. */
async function raw(path: string, bytes: Uint8Array): Promise<unknown[]> {
  const conn = await Deno.connect({ transport: "unix", path });
  const frames: unknown[] = [];
  try {
    let sent = 0;
    while (sent < bytes.length) sent += await conn.write(bytes.subarray(sent));
    await conn.closeWrite();
    for (;;) {
      const frame = await readFrame(conn, { firstByteMs: 2_000, frameMs: 2_000 });
      if (!frame.ok) return frames;
      frames.push(frame.value);
    }
  } catch {
    return frames;
  } finally {
    try {
      conn.close();
    } catch {
      // Closed by a deadline.
    }
  }
}

const echoWorks = async (path: string) => {
  const reply = await call(path, ECHO, { word: "b", times: 1 });
  strictEqual(reply.ok && reply.value.body.words, "b");
};

Deno.test("listen() gives at most an error to a malformed frame, and goes on serving", async () => {
  await using box = await rig();
  const bad = [
    new Uint8Array([0, 0]),
    new Uint8Array([0, 0, 0, 0]),
    new Uint8Array([0xff, 0xff, 0xff, 0xff]),
    frameOf("{}"),
    frameOf('{"v":1,"kind":"echo"}'),
    frameOf(GOOD.replace('"v":1', '"v": 1')),
    frameOf(GOOD.slice(0, -1)),
    frameOf('{"v":1,"kind":"nothing","body":{}}'),
    frameOf('{"v":1,"kind":"echo","body":{"word":"a","times":2,"role":"admin"}}'),
    frameOf('{"v":1,"kind":"echo","body":{"word":"aaaaaaaaaaa","times":2}}'),
  ];
  for (const bytes of bad) {
    const frames = await raw(box.path, bytes);
    for (const frame of frames) strictEqual(canonicalText(frame).includes('"error"'), true);
    strictEqual(frames.length <= 1, true);
    await echoWorks(box.path);
  }
});

Deno.test("listen() cuts a request at every byte without harm", async () => {
  await using box = await rig();
  const whole = frameOf(GOOD);
  for (let cut = 0; cut < whole.length; cut++) {
    strictEqual((await raw(box.path, whole.subarray(0, cut))).length, 0);
  }
  await echoWorks(box.path);
});

Deno.test("listen() refuses a length beyond the limit before it reserves memory", async () => {
  await using box = await rig();
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, MAX_FRAME_BYTES + 1);
  strictEqual((await raw(box.path, bytes)).length, 0);
  strictEqual(box.lines.some((line) => line.startsWith("frame-too-large")), true);
});

Deno.test("listen() answers another version with one clear error", async () => {
  await using box = await rig();
  const frames = await raw(box.path, frameOf('{"v":2,"kind":"echo","body":{}}'));
  strictEqual(frames.length, 1);
  strictEqual(canonicalText(frames[0]).includes("version-skew"), true);
});

Deno.test("listen() at its limit goes on when slow peers and peers that do not read are cut off", async () => {
  await using box = await rig(8);
  const connect = () => Deno.connect({ transport: "unix", path: box.path });
  const slow = await Promise.all(Array.from({ length: 12 }, connect));
  for (const conn of slow) await conn.write(new Uint8Array([0]));
  await echoWorks(box.path);
  const deaf = await Promise.all(Array.from({ length: 12 }, connect));
  const flood = frameOf(GOOD.replace('"times":2', '"times":100000'));
  for (const conn of deaf) await conn.write(flood);
  await echoWorks(box.path);
  for (const conn of [...slow, ...deaf]) conn.close();
});

Deno.test("listen() aborts a handler when its caller goes away", async () => {
  await using box = await rig();
  const gone = new AbortController();
  const waiting = call(box.path, WAIT, {}, { signal: gone.signal });
  await new Promise((resolve) => setTimeout(resolve, 50));
  gone.abort();
  strictEqual((await waiting).ok, false);
  while (box.aborted() === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  strictEqual(box.aborted(), 1);
});

Deno.test("listen() sees a byte that came in one piece with the request, and ends that caller", async () => {
  await using box = await rig();
  const request = frameOf(canonicalText({ v: 1, kind: "wait", body: {} }));
  const conn = await Deno.connect({ transport: "unix", path: box.path });
  strictEqual(await conn.write(joinBytes([request, new Uint8Array(1)])), request.length + 1);
  while (box.aborted() === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  strictEqual(box.lines.some((line) => line.includes("bytes after the request")), true);
  conn.close();
});

Deno.test("listen() takes no upload in crumbs: only its last piece may be short, and none empty", async () => {
  await using box = await rig();
  const part = (bytes: number, seq: number) => {
    const base64 = toBase64(new Uint8Array(bytes));
    return frameOf(canonicalText({ v: 1, kind: "chunk", body: { seq, base64 } }));
  };
  const ask = frameOf(canonicalText({ v: 1, kind: "copy", body: {} }));
  for (const sizes of [[0], [0, 0, 0], [1, 1], [MAX_CHUNK_BYTES, 1, 1], [MAX_CHUNK_BYTES, 0]]) {
    const frames = await raw(box.path, joinBytes([ask, ...sizes.map(part)]));
    strictEqual(frames.length, 1);
    strictEqual(canonicalText(frames[0]).includes("frame-malformed"), true, sizes.join());
  }
  await echoWorks(box.path);
});

Deno.test("call() cancelled while it connects sends nothing and closes", async () => {
  const path = `${Deno.makeTempDirSync({ prefix: "bx" })}/s.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const cancel = new AbortController();
  const calling = call(path, WAIT, {}, { signal: cancel.signal });
  cancel.abort();
  const ended = await calling;
  strictEqual(ended.ok ? "" : ended.code, "frame-closed");
  const conn = await listener.accept();
  strictEqual(await conn.read(new Uint8Array(1)), null, "something was sent");
  conn.close();
  listener.close();
});

Deno.test("call() brings events in order, then the reply", async () => {
  await using box = await rig();
  const seen: number[] = [];
  const reply = await call(box.path, ECHO, { word: "ab", times: 3 }, {
    onEvent: (event) => {
      seen.push(event.body.n);
    },
  });
  deepStrictEqual(seen, [0, 1, 2]);
  strictEqual(reply.ok && reply.value.body.words, "ababab");
});

Deno.test("call() returns the refusal's own code, and internal for a handler's bug", async () => {
  await using box = await rig();
  const refused = await call(box.path, ECHO, { word: "refuse", times: 0 });
  strictEqual(refused.ok ? "" : refused.code, "not-found");
  const broken = await call(box.path, ECHO, { word: "throw", times: 0 });
  strictEqual(broken.ok ? "" : broken.code, "internal");
  const cut = await call(box.path, ECHO, { word: "long", times: 0 });
  strictEqual(cut.ok ? "" : cut.code, "not-found");
  const unknown = await call(box.path, STRANGER, {});
  strictEqual(unknown.ok ? "" : unknown.code, "kind-unknown");
  const nobody = await call(`${box.path}.none`, ECHO, { word: "a", times: 0 });
  strictEqual(nobody.ok ? "" : nobody.code, "peer-down");
  const invalid = await call(box.path, ECHO, { word: "much too long", times: 0 });
  strictEqual(invalid.ok ? "" : invalid.code, "request-invalid");
});

Deno.test("call() carries exact bytes both ways around the size of a chunk", async () => {
  await using box = await rig();
  for (const size of [0, 1, MAX_CHUNK_BYTES - 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 400_000]) {
    const upload = new Uint8Array(size).map((_, i) => i * 31);
    const pieces: number[] = [];
    const reply = await call(box.path, COPY, {}, {
      upload,
      onChunk: (bytes) => {
        for (const byte of bytes) pieces.push(byte);
      },
    });
    strictEqual(reply.ok && reply.value.body.bytes, size);
    deepStrictEqual(pieces, [...upload]);
  }
  const over = await call(box.path, COPY, {}, { upload: new Uint8Array(1_000_001) });
  strictEqual(over.ok ? "" : over.code, "frame-too-large");
});

Deno.test("listen() closes at once while connections come in: none is left with nobody to end it", async () => {
  await using box = await rig(32, 600_000);
  const coming = Array.from(
    { length: 8 },
    () => Deno.connect({ transport: "unix", path: box.path }),
  );
  // The first is there in the same turn of the event loop in which the listener takes some of them.
  const closed = coming[0]?.then(box.close);
  for (const conn of await Promise.all(coming)) {
    try {
      strictEqual(await conn.read(new Uint8Array(1)), null);
    } catch {
      // Cut off before it was taken.
    }
    conn.close();
  }
  await closed;
});

Deno.test("listen() makes its socket 0600 and removes it when closed", async () => {
  const box = await rig();
  strictEqual((Deno.statSync(box.path).mode ?? 0) & 0o777, 0o600);
  const path = box.path;
  await box[Symbol.asyncDispose]();
  let isThere = true;
  try {
    Deno.statSync(path);
  } catch {
    isThere = false;
  }
  strictEqual(isThere, false);
});
