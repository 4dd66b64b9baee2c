// Guards: one request of a call reaches its origin once, whatever becomes of the connection.
import { deepStrictEqual, rejects } from "node:assert";
import { createServer } from "node:http";
import { openClient } from "./call_socket.ts";

Deno.test("openClient() a request whose connection closes before its answer arrived once, and fails", async () => {
  const arrived: string[] = [];
  const server = createServer((request, response) => {
    arrived.push(`${request.url}`);
    request.resume();
    request.on("end", () => {
      if (request.url === "/lost") request.socket.destroy();
      else response.end("ok");
    });
  });
  const bound = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", () => bound.resolve());
  await bound.promise;
  const client = openClient(undefined);
  try {
    const { port } = Object(server.address());
    const at = `http://127.0.0.1:${port}`;
    const send = async (path: string) =>
      await (await client.fetch(`${at}${path}`, { method: "POST", body: "x" })).text();
    await send("/warm");
    await rejects(() => send("/lost"));
    deepStrictEqual(arrived, ["/warm", "/lost"]);
  } finally {
    client.close();
    server.closeAllConnections();
    server.close();
  }
});
