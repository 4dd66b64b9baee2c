// Frames per second of one socket: a request of 100 bytes and its reply, checked on both sides,
// beside the same bytes without schemas or codec.
import { z } from "zod";
import { ok } from "../../shared/results/result.ts";
import { call } from "../../shared/wire/dial.ts";
import { exchange, message } from "../../shared/wire/exchange.ts";
import { listen, on } from "../../shared/wire/listen.ts";
import { inTurn, line, spread } from "./rounds.ts";

const ECHO = exchange({
  request: message("echo", { word: z.string().max(200) }),
  replies: [message("echoed", { word: z.string().max(200) })],
});
const CALLS = 500;
const WORD = "x".repeat(100);

export async function benchFrames(): Promise<void> {
  const folder = await Deno.makeTempDir();
  const checked = `${folder}/checked.sock`;
  const bare = `${folder}/bare.sock`;
  const server = listen({
    path: checked,
    log: () => {},
    routes: [on(ECHO, (body) => ok({ kind: "echoed", body }))],
  });
  const raw = Deno.listen({ transport: "unix", path: bare });
  const serving = serveBare(raw);
  const timed = (one: () => Promise<unknown>) => async () => {
    const from = performance.now();
    for (let i = 0; i < CALLS; i++) await one();
    return performance.now() - from;
  };
  const results = await inTurn({
    checked: timed(() => call(checked, ECHO, { word: WORD })),
    bare: timed(() => askBare(bare)),
  }, 8);
  const perSecond = (name: string) => CALLS / (spread(results.get(name) ?? []).p50 / 1_000);
  line("requests a second, one connection each, checked", perSecond("checked").toFixed(0));
  line("  the same bytes without schema or codec", perSecond("bare").toFixed(0));
  await server.close();
  raw.close();
  await serving;
  await Deno.remove(folder, { recursive: true });
}

async function serveBare(listener: Deno.UnixListener): Promise<void> {
  for await (const conn of listener) {
    const block = new Uint8Array(256);
    const read = await conn.read(block);
    await conn.write(block.subarray(0, read ?? 0));
    conn.close();
  }
}

async function askBare(path: string): Promise<void> {
  const conn = await Deno.connect({ transport: "unix", path });
  await conn.write(new TextEncoder().encode(WORD));
  await conn.read(new Uint8Array(256));
  conn.close();
}
