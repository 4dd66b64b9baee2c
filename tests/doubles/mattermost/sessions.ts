// Who a request or an upgrade speaks for: the server's order of look-up, where the first credential
// found wins, good or bad.
import type { User } from "./model.ts";
import { Refusal } from "./model.ts";
import type { World } from "./world.ts";

export interface Credential {
  readonly token: string;
  readonly from: "cookie" | "header" | "query";
}

const LONGEST = 50;

export function credentialOf(
  headers: Readonly<Record<string, string>>,
  query: URLSearchParams,
): Credential | null {
  const cookie = /(?:^|;\s*)MMAUTHTOKEN=([^;]*)/.exec(headers["cookie"] ?? "")?.[1];
  if (cookie !== undefined) return { token: cookie.slice(0, LONGEST), from: "cookie" };
  const header = /^(?:bearer|token) (.*)$/i.exec(headers["authorization"] ?? "")?.[1];
  if (header !== undefined) return { token: header.slice(0, LONGEST), from: "header" };
  const asked = query.get("access_token");
  return asked === null ? null : { token: asked.slice(0, LONGEST), from: "query" };
}

/** The live user of a token; expired and revoked tokens and disabled users are nobody. */
export function userOfToken(world: World, token: string): User | null {
  const row = world.store.tokens.get(token);
  if (row === undefined || (row.expires_at > 0 && row.expires_at <= world.now())) return null;
  const user = world.store.users.get(row.user_id);
  return user === undefined || user.delete_at > 0 ? null : user;
}

export const UNAUTHORIZED = "api.context.session_expired.app_error";

/** The caller of a request, or null; `Refusal` for credentials that are wrong in themselves. */
export function callerOf(
  world: World,
  credential: Credential | null,
  method: string,
): User | null {
  if (credential === null) return null;
  const user = userOfToken(world, credential.token);
  if (credential.from === "query" && user !== null) {
    if (world.store.tokens.get(credential.token)?.isOauth !== true) {
      throw new Refusal(401, "api.context.token_provided.app_error");
    }
  }
  if (credential.from === "cookie" && method !== "GET") throw new Refusal(401, UNAUTHORIZED);
  return user;
}
