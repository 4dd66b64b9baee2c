import { match, ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import type { Clock } from "../clock/clock.ts";
import { isPlainText } from "../text/escape.ts";
import { secretOf } from "../secrets/secret_store.ts";
import { makeLog } from "./log.ts";

const stopped: Clock = {
  nowUnixMs: () => 1_700_000_000_000,
  monotonicMs: () => 0,
  sleep: () => Promise.resolve(),
};

function linesOf(act: (log: ReturnType<typeof makeLog>) => void): string[] {
  const lines: string[] = [];
  act(makeLog("loopd", stopped, (line) => lines.push(line)));
  return lines;
}

Deno.test("makeLog() keeps every message on its own line, whatever is in it", () => {
  const forged = "x\n2026-01-01T00:00:00.000Z brokerd info allowed\r\u2028\u001b[2J";
  const [line = ""] = linesOf((log) => log.warn(forged));
  strictEqual(line.indexOf("\n"), line.length - 1);
  match(line, /^2023-11-14T22:13:20\.000Z loopd warn x\\u\{a\}2026/);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    const [entry = ""] = linesOf((log) => log.info(text));
    assert(entry.endsWith("\n") && isPlainText(entry.slice(0, -1)));
  }));
});

Deno.test("makeLog() never writes a secret and cuts a flood with its length", () => {
  const [line = ""] = linesOf((log) => log.info(`token ${secretOf("hunter2")}`));
  assert(line.endsWith("token [secret]\n"));
  const [long = ""] = linesOf((log) => log.error("a".repeat(20_000)));
  assert(long.endsWith(" [3616 more]\n"));
  const [failure = ""] = linesOf((log) =>
    log.failure("Cannot start", { ok: false, code: "disk-full", detail: "no room" })
  );
  assert(failure.endsWith("loopd error Cannot start: disk-full: no room\n"));
});
