// JSON answers with the server's own headers.
import type { Exchange } from "./http_server.ts";
import { COMMON_HEADERS } from "./sse_out.ts";

export function respondJson(exchange: Exchange, status: number, value: unknown): Promise<void> {
  const type = [["Content-Type", "application/json; charset=utf-8"]] as const;
  return exchange.respond(status, [...type, ...COMMON_HEADERS], JSON.stringify(value));
}

export function respondText(exchange: Exchange, status: number, text: string): Promise<void> {
  return exchange.respond(status, [["Content-Type", "text/plain"], ...COMMON_HEADERS], text);
}
