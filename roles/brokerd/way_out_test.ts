// Guards way_out.ts: what a call sends is recorded as it is told, a payload before it may leave, and a
// failing log ends the way.
import { deepStrictEqual, match, strictEqual } from "node:assert";
import { err, ok } from "../../shared/results/result.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { EGRESS_GO, EGRESS_OPEN, type EgressRequest } from "../../shared/wire/egress.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { listen, on } from "../../shared/wire/listen.ts";
import { newCall } from "../../tests/doubles/broker_house.ts";
import { openWayOut, type RequestLine } from "./way_out.ts";

type Line = BodyOf<typeof EgressRequest>;
const body = new TextEncoder().encode("payload");
const line = (n: number, more: Partial<Line> = {}): Line => ({
  n,
  method: "POST",
  url: "https://a.example/x",
  bytes: body.length,
  sha256: sha256Hex(body),
  refused: null,
  ...more,
});

/** An egressd that tells `lines`, each with the body, and counts what may leave. */
async function withEgressd(
  lines: readonly Line[],
  work: (socket: string, gone: () => number[], ended: Promise<void>) => Promise<void>,
  { named = "/h/run/eg/0123456789ab", pieces = 0 } = {},
): Promise<void> {
  const folder = Deno.makeTempDirSync({ prefix: "bx" });
  const gone: number[] = [];
  const over = Promise.withResolvers<void>();
  const server = listen({
    path: `${folder}/e.sock`,
    log: () => {},
    routes: [
      on(EGRESS_OPEN, async (_asked, io) => {
        await io.event({ kind: "opened", body: { folder: named } });
        const base64 = btoa("x".repeat(49_152));
        for (let i = 0; i < pieces; i++) {
          await io.event({ kind: "request_body", body: { n: 0, base64 } });
        }
        for (const one of lines) {
          await io.event({ kind: "request_body", body: { n: one.n, base64: btoa("payload") } });
          await io.event({ kind: "request", body: one });
        }
        await new Promise<void>((resolve) => io.signal.addEventListener("abort", () => resolve()));
        over.resolve();
        return ok({ kind: "closed", body: { requests: lines.length } });
      }),
      on(EGRESS_GO, ({ n }) => {
        gone.push(n);
        return ok({ kind: "ok", body: {} });
      }),
    ],
  });
  try {
    await work(`${folder}/e.sock`, () => gone, over.promise);
  } finally {
    await server.close();
    Deno.removeSync(folder, { recursive: true });
  }
}

const CALLS = "/h/run/eg";
const asked = { call: newCall(), origins: ["https://a.example:443"], inject: null };

Deno.test("openWayOut() without egressd there is no way and nothing is recorded", async () => {
  const way = await openWayOut("/nowhere/e.sock", CALLS, { ...asked, log_payload: false }, () => {
    throw new Error("recorded");
  });
  strictEqual(way.ok ? "" : way.code, "egress-unavailable");
});

Deno.test("openWayOut() a folder that is no call's is never mounted, whatever egressd says", async () => {
  const strange = [
    "/",
    "/h",
    "/h/run/eg",
    "/h/run/eg/",
    "/h/run/eg/..",
    "/h/run/eg/0123456789ab/x",
    "/h/run/eg/0123456789ab/h/run/eg/0123456789ab",
  ];
  for (const named of [...strange, "/home/owner/.ssh", "/h/run/egg/0123456789ab"]) {
    await withEgressd([], async (socket) => {
      const way = await openWayOut(socket, CALLS, { ...asked, log_payload: false }, () => ok(null));
      strictEqual(way.ok ? "" : way.code, "egress-unavailable", named);
    }, { named });
  }
});

Deno.test("openWayOut() a body beyond what the log can hold ends the way before its end", async () => {
  await withEgressd([], async (socket, _gone, ended) => {
    const open = { ...asked, log_payload: true };
    const way = await openWayOut(socket, CALLS, open, () => ok(null));
    await ended;
    if (way.ok) await way.value.close();
  }, { pieces: 62 });
});

Deno.test("openWayOut() a payload that cannot be recorded, or is not what was told, never leaves", async () => {
  for (
    const [told, record] of [
      [line(0), () => err("disk-full", "full")],
      [line(0, { sha256: sha256Hex(new Uint8Array()) }), () => ok(null)],
    ] as const
  ) {
    await withEgressd([told, line(1)], async (socket, gone, ended) => {
      const way = await openWayOut(socket, CALLS, { ...asked, log_payload: true }, record);
      strictEqual(way.ok, true);
      await ended;
      deepStrictEqual(gone(), []);
      if (way.ok) await way.value.close();
    });
  }
});

Deno.test("openWayOut() each payload is recorded before its go, a refused one gets none", async () => {
  const seen: string[] = [];
  const refused = line(1, { refused: "origin_not_granted" });
  await withEgressd([line(0), refused, line(2)], async (socket, gone) => {
    const done = Promise.withResolvers<void>();
    const record = (told: RequestLine, bytes: Uint8Array | null) => {
      seen.push(`${told.n} ${new TextDecoder().decode(bytes ?? undefined)} ${gone().join()}`);
      if (told.n === 2) done.resolve();
      return ok(null);
    };
    const way = await openWayOut(socket, CALLS, { ...asked, log_payload: true }, record);
    await done.promise;
    while (gone().length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    deepStrictEqual(gone(), [0, 2]);
    deepStrictEqual(seen, ["0 payload ", "1 payload 0", "2 payload 0"]);
    match(way.ok ? way.value.folder : "", /^\/h\/run\/eg\/0123456789ab$/);
    if (way.ok) await way.value.close();
  });
});
