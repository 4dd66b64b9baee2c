// The grammar of every socket: one request a connection, then event frames, then exactly one reply
// or error. An exchange names its schemas; client and server both check what they send and receive.
import { z } from "zod";
import { err, ok, type Result } from "../results/result.ts";
import { MAX_CHUNK_BYTES, WIRE_VERSION } from "./limits.ts";

/** The schema of one message: `{v, kind, body}` and nothing else, in the body neither. */
export function message<K extends string, B extends z.ZodRawShape>(kind: K, body: B) {
  const fixed = { v: z.literal(WIRE_VERSION), kind: z.literal(kind) };
  return z.strictObject({ ...fixed, body: z.strictObject(body) });
}

export type MessageSchema = z.ZodObject<
  { v: z.ZodLiteral<typeof WIRE_VERSION>; kind: z.ZodLiteral<string>; body: z.ZodType },
  z.core.$strict
>;

/** Kind and body of a message, version left out; distributes over a union of schemas. */
export type Said<M extends MessageSchema> = M extends MessageSchema
  ? { readonly kind: z.output<M>["kind"]; readonly body: z.output<M>["body"] }
  : never;

export type BodyOf<M extends MessageSchema> = z.output<M>["body"];

export interface Exchange<
  Q extends MessageSchema,
  E extends MessageSchema,
  R extends MessageSchema,
> {
  readonly request: Q;
  readonly events: readonly E[];
  readonly replies: readonly R[];
  /** Bytes that may follow the request as chunks; 0 means none may. */
  readonly uploadMaxBytes: number;
  /** Bytes that may precede the reply as chunks; 0 means none may. */
  readonly downloadMaxBytes: number;
}

export type AnyExchange = Exchange<MessageSchema, MessageSchema, MessageSchema>;
export type RequestOf<X extends AnyExchange> = BodyOf<X["request"]>;
export type EventOf<X extends AnyExchange> = Said<X["events"][number]>;
export type ReplyOf<X extends AnyExchange> = Said<X["replies"][number]>;

/** An exchange without chunks and, unless named, without events. */
export function exchange<
  Q extends MessageSchema,
  R extends MessageSchema,
  E extends MessageSchema = never,
>(
  parts: {
    request: Q;
    replies: readonly R[];
    events?: readonly E[];
    uploadMaxBytes?: number;
    downloadMaxBytes?: number;
  },
): Exchange<Q, E, R> {
  return { events: [], uploadMaxBytes: 0, downloadMaxBytes: 0, ...parts };
}

/** A piece of exact bytes on its way. `seq` counts from 0 without a gap. */
export const Chunk = message("chunk", {
  seq: z.int().min(0),
  base64: z.string().max(Math.ceil(MAX_CHUNK_BYTES / 3) * 4),
});

/** Closes a run of chunks, also an empty one. */
export const ChunkEnd = message("chunk_end", {
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** The one form of a refusal on a socket. */
export const ErrorReply = message("error", {
  code: z.string().max(64),
  message: z.string().max(1_000),
  detail: z.string().max(4_000),
});

const Envelope = z.strictObject({ v: z.int(), kind: z.string().max(64), body: z.unknown() });
export type Envelope = z.output<typeof Envelope>;

/** The outer form alone. Fails with `frame-malformed` or `version-skew`. */
export function parseEnvelope(value: unknown): Result<Envelope> {
  const parsed = Envelope.safeParse(value);
  if (!parsed.success) return err("frame-malformed", "A frame is not {v, kind, body}");
  if (parsed.data.v !== WIRE_VERSION) {
    return err("version-skew", `The peer speaks version ${parsed.data.v}, not ${WIRE_VERSION}`);
  }
  return ok(parsed.data);
}

/** Checks a frame against one schema. Fails with `frame-malformed`, naming the first bad field. */
export function parseAs<M extends z.ZodType>(schema: M, value: unknown): Result<z.output<M>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const issue = parsed.error.issues[0];
  const where = issue === undefined ? "frame" : issue.path.map(String).join(".");
  return err("frame-malformed", `${where}: ${issue?.message ?? "not as agreed"}`.slice(0, 500));
}

/** The member of `schemas` that describes `kind`, if any does. */
export function schemaOf<M extends MessageSchema>(
  schemas: readonly M[],
  kind: string,
): M | undefined {
  return schemas.find((schema) => schema.shape.kind.value === kind);
}
