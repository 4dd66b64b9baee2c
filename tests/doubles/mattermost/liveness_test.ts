// Guards the server's own liveness at the level of bytes: Pings each minute, a deadline that only
// Pongs extend, and Pongs withheld. Speaks raw TCP, as no client of the platform can stay silent.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { type Rig, startRig } from "./rig.ts";

/** A raw line after its upgrade; `read` gives the next bytes, null at the end. */
async function rawLine(rig: Rig) {
  const line = await Deno.connect({ hostname: "127.0.0.1", port: rig.double.port });
  const request = "GET /api/v4/websocket HTTP/1.1\r\nHost: double\r\nUpgrade: websocket\r\n" +
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
    `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ${rig.bot.token}\r\n\r\n`;
  await line.write(new TextEncoder().encode(request));
  const buffer = new Uint8Array(65_536);
  const read = async () => {
    const size = await line.read(buffer).catch(() => null);
    return size === null ? null : buffer.slice(0, size);
  };
  let head = "";
  while (!head.includes('"event":"hello"')) {
    head += new TextDecoder().decode(await read() ?? undefined);
  }
  assert(head.includes("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  return { line, read };
}

/** A masked client frame with an empty payload. */
const bare = (opcode: number) => new Uint8Array([0x80 | opcode, 0x80, 1, 2, 3, 4]);
const PING = 9;
const PONG = 10;

Deno.test("a line that never answers Pings is ended, whatever else it sends", async () => {
  const rig = await startRig({ timeScale: 0.005 });
  const { line, read } = await rawLine(rig);
  try {
    const opcodes: number[] = [];
    for (;;) {
      const bytes = await read();
      if (bytes === null) break;
      opcodes.push((bytes[0] ?? 0) & 0x0f);
      // Data and a client's own Pings do not count.
      if (opcodes.length < 5) await line.write(bare(PING)).catch(() => {});
    }
    assert(opcodes.includes(PING) && opcodes.includes(PONG));
    strictEqual(rig.double.sockets(), 0);
  } finally {
    line.close();
    await rig.double.stop();
  }
});

Deno.test("a line that answers Pings stays; Pongs can be withheld from it", async () => {
  const rig = await startRig({ timeScale: 0.005 });
  const { line, read } = await rawLine(rig);
  try {
    for (let pings = 0; pings < 3; pings++) {
      const bytes = await read();
      strictEqual((bytes?.[0] ?? 0) & 0x0f, PING);
      await line.write(bare(PONG));
    }
    strictEqual(rig.double.sockets(), 1);
    rig.double.set({ pongWithheld: true });
    await line.write(bare(PING));
    const next = await read();
    deepStrictEqual([(next?.[0] ?? 0) & 0x0f], [PING]);
  } finally {
    line.close();
    await rig.double.stop();
  }
});
