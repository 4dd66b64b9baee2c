// What the server says, as far as it is used. Unknown fields are dropped and missing optional ones are
// filled in, as every release adds some; a thing without its essentials is refused. What a post holds
// is anybody's and may be of any depth and number, so it costs that post alone: of a list each item is
// read by itself.
import { z } from "zod";
import { parseUnbounded } from "../../shared/wire/codec.ts";

/** What the server wrote, unchecked; undefined for what is no JSON. */
export function parseSaid(text: unknown): unknown {
  const value = typeof text === "string" ? parseUnbounded(text) : null;
  return value?.ok === true ? value.value : undefined;
}

const id = z.string().regex(/^[a-z0-9]{26}$/);
/** The server's time in Unix milliseconds, or another whole number; one that no clock shows is none. */
export const Time = z.int().min(-8.64e15).max(8.64e15);
const key = z.string();
const text = z.string().transform((said) => said.toWellFormed());

export const FileInfo = z.object({
  id,
  name: text.catch("file"),
  size: Time.catch(0),
});
export type FileInfo = z.output<typeof FileInfo>;

export const Post = z.object({
  id,
  create_at: Time,
  edit_at: Time.default(0).catch(1),
  delete_at: Time.default(0).catch(1),
  user_id: text,
  channel_id: id,
  root_id: z.string().regex(/^([a-z0-9]{26})?$/).default(""),
  /** Absent counts as an edit-history copy: a post that cannot be judged is not the owner's. */
  original_id: text.catch("?"),
  remote_id: text.nullish().catch("?"),
  message: text.catch(""),
  message_source: text.nullish().catch(null),
  type: text.catch("?"),
  props: z.record(key, z.unknown()).nullish().catch({ from_webhook: "?" }),
  file_ids: z.array(text).nullish().catch(null),
  metadata: z.object({ files: z.array(FileInfo).nullish().catch(null) }).nullish().catch(null),
});
export type Post = z.output<typeof Post>;

export const PostList = z.object({ order: z.array(text), posts: z.record(key, z.unknown()) });
/** Posts or reactions, each to be read by itself. */
export const Items = z.array(z.unknown()).nullable();

export const Reaction = z.object({ user_id: text, post_id: id, emoji_name: text });

export const User = z.object({
  id,
  is_bot: z.boolean().catch(false),
  delete_at: Time.catch(0),
  roles: text.catch("system_admin"),
});

export const Channel = z.object({ id, type: text, name: text, delete_at: Time.catch(0) });

/** Every value of the server's configuration is a string. */
export const ServerConfig = z.object({ MaxPostSize: text.catch("") });

export const AppError = z.object({ id: text.catch(""), message: text.catch("") });
export const Uploaded = z.object({ file_infos: z.array(z.object({ id })) });
export const Anything = z.unknown();

/** A field of another kind counts as absent, so that one odd event does not end the connection. */
export const SocketMessage = z.object({
  event: text.optional().catch(undefined),
  seq: Time.optional().catch(undefined),
  data: z.record(key, z.unknown()).nullish().catch(null),
  status: text.optional().catch(undefined),
  seq_reply: Time.optional().catch(undefined),
});
