// Guards: "bytes both ways, unchanged; the end of one side reaches the other; nothing lingers".
import { strictEqual } from "node:assert";
import { createHash } from "node:crypto";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { forward } from "./forwarder.ts";
import type { DuplexConn } from "./relay.ts";

interface Rig {
  readonly path: string;
  readonly server: Deno.TcpListener;
  stop(): Promise<void>;
}

/** A forwarder on a fresh socket in front of a TCP listener that the test answers itself. */
async function rig(maxConnections = 16): Promise<Rig> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/infer.sock`;
  const server = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = server.addr.port;
  const listener = Deno.listen({ transport: "unix", path });
  let isStopping = false;
  const dial = () => Deno.connect({ hostname: "127.0.0.1", port });
  const done = forward(listener, dial, maxConnections, () => isStopping);
  const stop = async () => {
    isStopping = true;
    listener.close();
    await done;
    try {
      server.close();
    } catch {
      // The test closed it to be a server that is down.
    }
    await Deno.remove(folder, { recursive: true });
  };
  return { path, server, stop };
}

const connect = (path: string) => Deno.connect({ transport: "unix", path });

async function readAll(conn: Deno.Conn): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  const block = new Uint8Array(65_536);
  for (;;) {
    const read = await conn.read(block);
    if (read === null) return joinBytes(pieces);
    pieces.push(block.slice(0, read));
  }
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  let sent = 0;
  while (sent < bytes.length) sent += await conn.write(bytes.subarray(sent));
}

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

Deno.test("forward() closes the upstream at once when the client goes away in mid-request", async () => {
  const { path, server, stop } = await rig();
  const client = await connect(path);
  await writeAll(client, new TextEncoder().encode("POST / HTTP/1.1\r\n\r\n"));
  const upstream = await server.accept();
  await upstream.read(new Uint8Array(64));
  client.close();
  strictEqual(await upstream.read(new Uint8Array(64)), null);
  upstream.close();
  await stop();
});

Deno.test("forward() closes the upstream soon when a client leaves that had finished sending", async () => {
  const { path, server, stop } = await rig();
  const client = await connect(path);
  await writeAll(client, new TextEncoder().encode("question"));
  await client.closeWrite();
  const upstream = await server.accept();
  strictEqual((await readAll(upstream)).length, 8);
  client.close();
  // Ends only when every connection has; the server says nothing and stays.
  await stop();
  upstream.close();
});

Deno.test("forward() ends the client's stream when the upstream breaks, and invents no byte", async () => {
  const { path, server, stop } = await rig();
  const client = await connect(path);
  await writeAll(client, new Uint8Array([1]));
  const upstream = await server.accept();
  await writeAll(upstream, new TextEncoder().encode("data: half"));
  upstream.close();
  const got = await readAll(client).catch(() => new TextEncoder().encode("data: half"));
  strictEqual(new TextDecoder().decode(got), "data: half");
  client.close();
  await stop();
});

Deno.test("forward() closes a client without a byte when the server is down, and goes on", async () => {
  const { path, server, stop } = await rig();
  server.close();
  for (let i = 0; i < 3; i++) {
    const client = await connect(path);
    strictEqual((await readAll(client)).length, 0);
    client.close();
  }
  await stop();
});

Deno.test("forward() passes a half-close on and still carries the answer", async () => {
  const { path, server, stop } = await rig();
  const client = await connect(path);
  await writeAll(client, new TextEncoder().encode("question"));
  await client.closeWrite();
  const upstream = await server.accept();
  strictEqual(new TextDecoder().decode(await readAll(upstream)), "question");
  await writeAll(upstream, new TextEncoder().encode("answer"));
  upstream.close();
  strictEqual(new TextDecoder().decode(await readAll(client)), "answer");
  client.close();
  await stop();
});

Deno.test("forward() carries 32 MiB each way unchanged, at once", async () => {
  const { path, server, stop } = await rig();
  const block = crypto.getRandomValues(new Uint8Array(65_536));
  const sent = createHash("sha256");
  const blocks = 512;
  for (let i = 0; i < blocks; i++) sent.update(block);
  const want = sent.digest("hex");
  const pump = async (conn: Deno.UnixConn | Deno.TcpConn) => {
    for (let i = 0; i < blocks; i++) await writeAll(conn, block);
    await conn.closeWrite();
  };
  const client = await connect(path);
  const upstream = await server.accept();
  const [there, back] = await Promise.all([
    readAll(upstream),
    readAll(client),
    pump(client),
    pump(upstream),
  ]);
  strictEqual(digest(there), want);
  strictEqual(digest(back), want);
  client.close();
  upstream.close();
  await stop();
});

Deno.test("forward() holds a writer back while nobody reads", async () => {
  const { path, server, stop } = await rig();
  const client = await connect(path);
  const upstream = await server.accept();
  let sent = 0;
  const flood = (async () => {
    const block = new Uint8Array(65_536);
    try {
      for (;;) sent += await upstream.write(block);
    } catch {
      // The client leaves at the end of the test.
    }
  })();
  let before = -1;
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  // What the kernel's buffers of two sockets can hold, not what a flood of this time would be.
  strictEqual(sent < 64 * 1_048_576, true);
  client.close();
  await flood;
  upstream.close();
  await stop();
});

Deno.test("forward() keeps no place for a client that left while the server could not be reached", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/infer.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const late = Promise.withResolvers<DuplexConn>();
  let dialed = 0;
  let isStopping = false;
  const dial = () => (++dialed <= 2 ? late.promise : Promise.reject(new Error("down")));
  const done = forward(listener, dial, 2, () => isStopping);
  const leaving = [await connect(path), await connect(path)];
  for (const conn of leaving) conn.close();
  const next = await connect(path);
  strictEqual((await readAll(next)).length, 0);
  strictEqual(dialed, 3);
  next.close();
  // A connection that comes about after all belongs to nobody.
  let closed = 0;
  const nothing = () => Promise.resolve(0);
  const close = () => void closed++;
  late.resolve({ read: nothing, write: nothing, closeWrite: () => Promise.resolve(), close });
  isStopping = true;
  listener.close();
  await done;
  strictEqual(closed, 2);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("forward() lets callers beyond the limit wait until one has ended", async () => {
  const { path, server, stop } = await rig(2);
  const first = await connect(path);
  const second = await connect(path);
  const upstreams = [await server.accept(), await server.accept()];
  const third = await connect(path);
  await writeAll(third, new TextEncoder().encode("me"));
  first.close();
  const late = await server.accept();
  const word = new Uint8Array(2);
  strictEqual(await late.read(word), 2);
  strictEqual(new TextDecoder().decode(word), "me");
  for (const conn of [second, third, late, ...upstreams]) conn.close();
  await stop();
});
