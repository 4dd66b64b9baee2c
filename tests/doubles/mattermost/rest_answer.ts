// How an answer leaves the double: as the route made it, or as a fault spoils it.
import { Buffer } from "node:buffer";
import type { ServerResponse } from "node:http";
import { delay } from "./delay.ts";
import type { RestAnswer } from "./exchange.ts";
import type { RestAction } from "./knobs.ts";
import { newId, Refusal } from "./model.ts";

export function errorAnswer(thrown: unknown): RestAnswer {
  const refusal = thrown instanceof Refusal
    ? thrown
    : new Refusal(500, "double.internal", `${thrown}`);
  return {
    status: refusal.status,
    body: {
      id: refusal.id,
      message: refusal.message,
      detailed_error: "",
      request_id: newId(),
      status_code: refusal.status,
    },
  };
}

export const TEXT_TYPE = "text/plain; charset=utf-8";
const HTML_TYPE = "text/html";
const PROXY_PAGE = "<html><body><h1>Bad gateway</h1></body></html>\n";

export function isRun(action: RestAction | null): boolean {
  if (action === null) return true;
  switch (action.kind) {
    case "refuse":
    case "limited":
    case "redirect":
      return false;
    case "proxy":
    case "empty":
    case "lost":
      return action.isCommitted;
    default:
      return true;
  }
}

export function statusOf(action: RestAction, made: RestAnswer | null): number {
  switch (action.kind) {
    case "refuse":
    case "proxy":
    case "empty":
      return action.status;
    case "limited":
      return 429;
    case "redirect":
      return 302;
    case "lost":
    case "truncated":
      return 0;
    default:
      return made?.status ?? 500;
  }
}

interface Answering {
  readonly response: ServerResponse;
  readonly base: Readonly<Record<string, string>>;
  readonly made: RestAnswer | null;
  readonly action: RestAction | null;
}

export function sendText(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
): void {
  response.writeHead(status, { ...headers, "Content-Length": `${Buffer.byteLength(text)}` });
  response.end(text);
}

function sendMade(
  { response, base, made }: Answering,
  type = "application/json",
): void {
  if (made?.bytes !== undefined) {
    response.writeHead(made.status, {
      ...base,
      ...made.headers,
      "Content-Length": made.bytes.length,
    });
    return void response.end(made.bytes);
  }
  const text = JSON.stringify(made?.body ?? null);
  sendText(response, made?.status ?? 500, { ...base, "Content-Type": type }, text);
}

export async function answer(parts: Answering): Promise<void> {
  const { response, base, made, action } = parts;
  if (action === null) return sendMade(parts);
  switch (action.kind) {
    case "refuse":
      return sendMade({ ...parts, made: errorAnswer(new Refusal(action.status, action.id)) });
    case "limited": {
      const headers: Record<string, string> = {
        ...base,
        "Content-Type": TEXT_TYPE,
        "X-RateLimit-Limit": "100",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": `${action.resetS}`,
      };
      if (action.retryAfterS !== null) headers["Retry-After"] = `${action.retryAfterS}`;
      return sendText(response, 429, headers, "limit exceeded\n");
    }
    case "proxy":
      return sendText(response, action.status, { "Content-Type": HTML_TYPE }, PROXY_PAGE);
    case "empty":
      return sendText(response, action.status, {}, "");
    case "redirect":
      return sendText(response, 302, { Location: action.location }, "");
    case "slow":
      await delay(action.ms);
      return sendMade(parts);
    case "wrong-type":
      return sendMade(parts, "text/html; charset=utf-8");
    case "truncated":
      return truncate(response, base, made);
    case "lost":
      response.socket?.resetAndDestroy();
      return;
  }
}

/** Half of the JSON under the length of all of it, then the end of the line. */
function truncate(
  response: ServerResponse,
  base: Readonly<Record<string, string>>,
  made: RestAnswer | null,
): void {
  const text = JSON.stringify(made?.body ?? null);
  const headers = {
    ...base,
    "Content-Type": "application/json",
    "Content-Length": `${Buffer.byteLength(text)}`,
  };
  response.writeHead(made?.status ?? 500, headers);
  response.write(text.slice(0, Math.ceil(text.length / 2)), () => response.socket?.destroy());
}
