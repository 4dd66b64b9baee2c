// The identifiers of the house, each with one schema. An id is parsed by its schema before it is
// ever used as part of a path; the schemas admit no slash, dot, space or control character.
import { z } from "zod";
import type { Random } from "../clock/random.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}";

/** A ULID: 48 bits of milliseconds, 80 random bits, Crockford base 32, 26 characters. */
export function ulid(unixMs: number, random: Random): string {
  let time = unixMs;
  let head = "";
  for (let i = 0; i < 10; i++) {
    head = CROCKFORD.charAt(time % 32) + head;
    time = Math.floor(time / 32);
  }
  const tail = [...random.bytes(16)].map((byte) => CROCKFORD.charAt(byte % 32)).join("");
  return head + tail;
}

/** When a ULID was made, in milliseconds since 1970; also of an id that ends in one. */
export function ulidUnixMs(id: string): number {
  return [...id.slice(-26, -16)].reduce((ms, digit) => ms * 32 + CROCKFORD.indexOf(digit), 0);
}

/** `mm-<post id>`, `chat-<ULID>`, `job-<name>-<ULID>` or `run-<ULID>`. */
export const SessionId = z.string().max(96).regex(
  new RegExp(`^(?:mm-[a-z0-9]{26}|chat-${ULID}|job-[a-z][a-z0-9_]{0,31}-${ULID}|run-${ULID})$`),
).brand("SessionId");
export type SessionId = z.output<typeof SessionId>;

/** The sender's id of one message; a turn is idempotent by it. */
export const MessageId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/).brand("MessageId");
export type MessageId = z.output<typeof MessageId>;

/** One tool call of one session, made by loopd: `c-<ULID>`. Exactly-once is by this id. */
export const CallId = z.string().regex(new RegExp(`^c-${ULID}$`)).brand("CallId");
export type CallId = z.output<typeof CallId>;

/** One question to the owner, made by brokerd: `a-<ULID>`. */
export const ApprovalId = z.string().regex(new RegExp(`^a-${ULID}$`)).brand("ApprovalId");
export type ApprovalId = z.output<typeof ApprovalId>;

/** One turn of one session, made by loopd: `t-<ULID>`. */
export const TurnId = z.string().regex(new RegExp(`^t-${ULID}$`)).brand("TurnId");
export type TurnId = z.output<typeof TurnId>;

/** Lower-case hexadecimal SHA-256. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** A tool's name. */
export const ToolName = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/);
