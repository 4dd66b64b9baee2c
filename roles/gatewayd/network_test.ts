// Guards: a request that changes something reaches the server once, whatever becomes of its connection.
import { deepStrictEqual, match, rejects } from "node:assert";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { networkOf } from "./network.ts";

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
  const network = networkOf(null);
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
