// What a client may say over the WebSocket, and the server's answers: the challenge, ping, typing,
// and a FAIL for the rest. A deaf session still gets its replies; only their status tells.
import { newId } from "./model.ts";
import type { Connection } from "./connections.ts";
import type { World } from "./world.ts";

export interface ActionParts {
  readonly world: World;
  readonly connection: Connection;
  readonly userOf: (token: string) => string | null;
  readonly authenticate: (token: string, userId: string) => void;
  readonly record: (detail: string) => void;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fail(parts: ActionParts, seq: unknown, name: string, status: number): void {
  parts.connection.line?.sendText(JSON.stringify({
    status: "FAIL",
    error: {
      id: `api.web_socket_router.${name}.app_error`,
      message: "Refused by the double.",
      detailed_error: "",
      request_id: newId(),
      status_code: status,
    },
    seq_reply: seq,
  }));
}

function succeed(parts: ActionParts, seq: unknown, data?: Record<string, unknown>): void {
  const reply = { status: "OK", ...(data === undefined ? {} : { data }), seq_reply: seq };
  parts.connection.line?.sendText(JSON.stringify(reply));
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null; // Undecodable text ends the socket, as the server does.
  }
}

function challenge(parts: ActionParts, message: Record<string, unknown>): void {
  if (parts.connection.userId !== "") return; // A second challenge is never answered.
  const token = isRecord(message.data) ? message.data.token : undefined;
  const userId = typeof token === "string" ? parts.userOf(token) : null;
  if (typeof token !== "string" || userId === null) return parts.connection.line?.fin();
  parts.authenticate(token, userId);
  succeed(parts, message.seq);
}

/** Answers one text message; the line may be gone afterwards. */
export function answerAction(text: string, parts: ActionParts): void {
  const { connection, world } = parts;
  const message = parsed(text);
  parts.record(message === null ? "undecodable" : `${message.action}`);
  if (message === null) return connection.line?.fin();
  const { seq, action } = message;
  if (action === "authentication_challenge") return challenge(parts, message);
  if (typeof action !== "string" || action === "") return fail(parts, seq, "no_action", 400);
  if (typeof seq !== "number" || seq <= 0) return fail(parts, seq, "bad_seq", 400);
  const isIn = connection.userId !== "" && !connection.isDeaf &&
    parts.userOf(connection.token) !== null;
  if (!isIn && connection.userId === "") return; // The reply is normally never delivered.
  if (action === "ping" && world.knobs().pingReplyWithheld) return;
  if (!isIn) return fail(parts, seq, "not_authenticated", 401);
  if (action === "ping") {
    return succeed(parts, seq, {
      text: "pong",
      version: world.knobs().version,
      server_time: world.now(),
      node_id: "",
    });
  }
  if (action === "user_typing") return succeed(parts, seq);
  if (action === "presence") {
    connection.hasPresence = true;
    return succeed(parts, seq);
  }
  fail(parts, seq, "bad_action", 400);
}
