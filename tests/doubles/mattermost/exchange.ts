// One REST request and what a route makes of it: parts of the path, the caller, typed readings of
// body and query, and the answer.
import { Refusal, type User } from "./model.ts";
import type { Knobs } from "./knobs.ts";
import { INVALID_BODY } from "./posts.ts";
import type { Post } from "./model.ts";

export interface RestRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Parsed JSON, or undefined when the body is none. */
  readonly body: unknown;
}

export interface RestAnswer {
  readonly status: number;
  /** JSON, or bytes with a type of their own. */
  readonly body: unknown;
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the record: the post made or changed, and whether it was made before. */
  readonly post?: Post;
  readonly isEcho?: boolean;
}

export interface RouteCall {
  readonly request: RestRequest;
  readonly knobs: Knobs;
  /** The caller; routes that need none are marked open. */
  readonly me: User;
  /** Named parts of the path, `me` already replaced. */
  readonly part: (name: string) => string;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function bodyOf(call: RouteCall): Record<string, unknown> {
  if (!isRecord(call.request.body)) throw new Refusal(400, INVALID_BODY);
  return call.request.body;
}

export function listBody(call: RouteCall): string[] {
  const { body } = call.request;
  if (!Array.isArray(body) || body.some((one) => typeof one !== "string")) {
    throw new Refusal(400, INVALID_BODY);
  }
  return body;
}

export const textIn = (body: Record<string, unknown>, key: string): string => {
  const value = body[key];
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Refusal(400, INVALID_BODY);
  return value;
};

export function textsIn(body: Record<string, unknown>, key: string): string[] {
  const value = body[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string")) {
    throw new Refusal(400, INVALID_BODY);
  }
  return value;
}

/** A query parameter as a boolean: before v11 exactly "true", later also its usual spellings. */
export function flag(call: RouteCall, name: string): boolean {
  const text = call.request.query.get(name) ?? "";
  if (call.knobs.profile === "v10.11") return text === "true";
  return ["true", "1", "t", "T", "True", "TRUE"].includes(text);
}

export function count(call: RouteCall, name: string, preset: number): number {
  const text = call.request.query.get(name);
  if (text === null || !/^\d{1,15}$/.test(text)) return preset;
  return Number(text);
}
