// One REST request from its bytes to its answer: limit, faults, session, route, record. Faults that
// commit run the route first and then spoil what is sent.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Buffer } from "node:buffer";
import { delay } from "./delay.ts";
import type { RestAnswer, RestRequest } from "./exchange.ts";
import { answer, errorAnswer, isRun, sendText, statusOf, TEXT_TYPE } from "./rest_answer.ts";
import { newId, Refusal, type User } from "./model.ts";
import type { RateLimiter } from "./rate_limit.ts";
import type { TrafficRecord } from "./record.ts";
import type { FaultQueue } from "./rest_faults.ts";
import { findRoute, type FoundRoute, type Route } from "./routes.ts";
import { callerOf, credentialOf, UNAUTHORIZED } from "./sessions.ts";
import type { World } from "./world.ts";

export const API = "/api/v4";
const MAX_JSON_BYTES = 300_000;

const NOBODY: User = {
  id: "",
  username: "",
  first_name: "",
  roles: "",
  is_bot: false,
  bot_description: "",
  create_at: 0,
  update_at: 0,
  delete_at: 0,
};

export interface RestParts {
  readonly world: World;
  readonly routes: readonly Route[];
  readonly record: TrafficRecord;
  readonly faults: FaultQueue;
  readonly limiter: RateLimiter;
  readonly onActive: (userId: string) => void;
  readonly isStopping: () => boolean;
}

export async function bytesOf(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

export function headersOf(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([key, value]) => [key, `${value ?? ""}`]),
  );
}

function parsedBody(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // Routes that need JSON refuse it themselves.
  }
}

export function createRest(parts: RestParts) {
  const { world, limiter } = parts;
  return async (incoming: IncomingMessage, response: ServerResponse, url: URL): Promise<void> => {
    const bytes = await bytesOf(incoming);
    const request: RestRequest = {
      method: incoming.method ?? "GET",
      path: url.pathname.slice(API.length),
      query: url.searchParams,
      headers: headersOf(incoming),
      bytes,
      body: parsedBody(bytes),
    };
    await delay(world.knobs().latencyMs);
    const verdict = limiter(world.knobs().rateLimit);
    const base = { ...standing(world), ...verdict.headers };
    if (verdict.isLimited) {
      note(parts, request, null, { status: 429, fault: "limited" });
      return sendText(response, 429, { ...base, "Content-Type": TEXT_TYPE }, "limit exceeded\n");
    }
    const action = parts.faults.take(request.method, request.path);
    const made = isRun(action) ? await attempt(parts, request) : null;
    if (parts.isStopping()) return void response.destroy();
    const status = action === null ? made?.status ?? 500 : statusOf(action, made);
    note(parts, request, made, { status, fault: action?.kind ?? "" });
    await answer({ response, base, made, action });
  };
}

const standing = (world: World) => ({
  "X-Request-Id": newId(),
  "X-Version-Id": `${world.knobs().version}.1786900000.7c2f9e.false`,
  "Expires": "0",
});

async function attempt(parts: RestParts, request: RestRequest): Promise<RestAnswer> {
  try {
    return await run(parts, request, findRoute(parts.routes, request.method, request.path));
  } catch (thrown) {
    return errorAnswer(thrown);
  }
}

async function run(
  { world, onActive }: RestParts,
  request: RestRequest,
  found: FoundRoute | null,
): Promise<RestAnswer> {
  if (found === null) throw new Refusal(404, "api.context.404.app_error");
  const knobs = world.knobs();
  const credential = credentialOf(request.headers, request.query);
  const me = knobs.sessionsInvalid ? null : callerOf(world, credential, request.method);
  if (me === null && found.route.isOpen !== true) throw new Refusal(401, UNAUTHORIZED);
  if (me !== null) onActive(me.id);
  if (request.path !== "/files" && request.bytes.length > MAX_JSON_BYTES) {
    throw new Refusal(413, "api.context.request_body_too_large.app_error");
  }
  const self = me ?? NOBODY;
  return await found.route.run({
    request,
    knobs,
    me: self,
    part: (name) => {
      const text = found.parts.get(name) ?? "";
      return name === "user" && text === "me" ? self.id : text;
    },
  });
}

function userIdOf(world: World, request: RestRequest): string {
  try {
    return callerOf(world, credentialOf(request.headers, request.query), "GET")?.id ?? "";
  } catch {
    return ""; // A credential in the wrong place names nobody.
  }
}

function note(
  { world, record }: RestParts,
  request: RestRequest,
  made: RestAnswer | null,
  sent: { readonly status: number; readonly fault: string },
): void {
  const headers = { ...request.headers };
  const { authorization } = headers;
  if (authorization !== undefined) headers.authorization = authorization.replace(/ .*/, " TOKEN");
  record.add({
    kind: "request",
    method: request.method,
    path: request.path,
    query: request.query.toString(),
    headers,
    userId: userIdOf(world, request),
    body: request.body ?? null,
    isCommitted: made !== null && made.status < 300,
    status: sent.status,
    fault: sent.fault,
    post: made?.post ?? null,
    isEcho: made?.isEcho === true,
  });
}
