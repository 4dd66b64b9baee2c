// Guards: a request that changes something reaches the server once, whatever becomes of its connection;
// and no reset of a WebSocket, whenever it comes, can end the role.
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createRawServer } from "node:net";
import { plainNetwork } from "../../tests/doubles/gatewayd.ts";
import { isLostSocket, networkOf } from "./network.ts";

Deno.test("networkOf() a change whose connection closes before its answer arrived once, and fails", async () => {
  const arrived: string[] = [];
  const server = createServer((request, response) => {
    arrived.push(`${request.method} ${request.url}`);
    request.resume();
    request.on("end", () => {
      if (request.url === "/lost") request.socket.destroy();
      else response.end("{}");
    });
  });
  const bound = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", () => bound.resolve());
  await bound.promise;
  const address = server.address();
  const port = typeof address === "object" ? (address satisfies AddressInfo | null)?.port : 0;
  const network = plainNetwork();
  const send = async (method: string, path: string) => {
    const body = method === "GET" ? {} : { body: "{}" };
    const answer = await network.fetch(`http://127.0.0.1:${port}${path}`, { method, ...body });
    match(await answer.text(), /\{\}/);
  };
  try {
    for (const method of ["POST", "PUT", "DELETE"]) {
      await send("GET", "/warm");
      await send(method, "/warm");
      await rejects(() => send(method, "/lost"));
      deepStrictEqual(arrived.filter((one) => one === `${method} /lost`).length, 1);
    }
  } finally {
    network.close();
    server.closeAllConnections();
    server.close();
  }
});

/** Answers every upgrade and resets its line at once. */
function resetting(): Promise<{ readonly port: number; close(): void }> {
  const server = createRawServer((socket) => {
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      text += piece;
      const key = /Sec-WebSocket-Key: (.*)\r\n[\s\S]*\r\n\r\n/i.exec(text)?.[1];
      if (key === undefined) return;
      text = "";
      const accept = createHash("sha1").update(key + GUID).digest("base64");
      const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n` +
        `Connection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
      socket.write(head);
      socket.write(HELLO);
      socket.resetAndDestroy();
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve({ port: Object(server.address()).port, close: () => void server.close() });
    });
  });
}

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const HELLO = new Uint8Array([0x81, 2, 0x68, 0x69]);

Deno.test("isLostSocket() knows what the runtime lets go of when a line is reset, and nothing else", async () => {
  const reasons: unknown[] = [];
  const onRejection = (event: PromiseRejectionEvent) => {
    reasons.push(event.reason);
    event.preventDefault();
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  const server = await resetting();
  const network = plainNetwork();
  try {
    for (let i = 0; i < 100; i++) {
      await new Promise<void>((resolve) => {
        const wire = network.open(`ws://127.0.0.1:${server.port}/`, {}, {
          open: () => wire.send("{}"),
          message: () => wire.send("{}"),
          end: resolve,
        });
        setTimeout(() => wire.close(), i % 5);
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    deepStrictEqual(reasons.filter((reason) => !isLostSocket(reason)), []);
  } finally {
    globalThis.removeEventListener("unhandledrejection", onRejection);
    network.close();
    server.close();
  }
  const own = new TypeError("Connection reset by peer (os error 104)");
  for (
    const reason of [own, new TypeError("x is not a function"), new Error("os error 104"), null]
  ) {
    strictEqual(isLostSocket(reason), false);
  }
});

Deno.test("networkOf() a ca_file that is no certificate is refused, not passed over", async () => {
  const key = new URL("../../tests/doubles/mattermost/tls/key.pem", import.meta.url);
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  for (const text of ["", "garbage", broken, await Deno.readTextFile(key)]) {
    const network = networkOf(text);
    strictEqual(network.ok ? "taken" : network.code, "config-invalid", text);
  }
});
