// The rows a Mattermost server keeps and sends, as far as the double has them. Field names are the
// wire's own. Times are server milliseconds; ids are 26 lower-case characters.

export type Props = Readonly<Record<string, unknown>>;

export interface User {
  readonly id: string;
  readonly username: string;
  readonly first_name: string;
  readonly roles: string;
  readonly is_bot: boolean;
  readonly bot_description: string;
  readonly create_at: number;
  readonly update_at: number;
  readonly delete_at: number;
}

export interface Token {
  readonly token: string;
  readonly user_id: string;
  /** 0 = never. */
  readonly expires_at: number;
  /** OAuth sessions alone may be named in `?access_token=`. */
  readonly isOauth: boolean;
}

export type ChannelType = "O" | "P" | "D" | "G";

export interface Channel {
  readonly id: string;
  readonly type: ChannelType;
  readonly name: string;
  readonly display_name: string;
  readonly team_id: string;
  readonly creator_id: string;
  readonly create_at: number;
  readonly update_at: number;
  readonly delete_at: number;
  readonly last_post_at: number;
  readonly members: readonly string[];
}

export interface Post {
  readonly id: string;
  readonly create_at: number;
  readonly update_at: number;
  readonly edit_at: number;
  readonly delete_at: number;
  readonly is_pinned: boolean;
  readonly user_id: string;
  readonly channel_id: string;
  readonly root_id: string;
  readonly original_id: string;
  readonly message: string;
  readonly message_source?: string;
  readonly type: string;
  readonly props: Props;
  readonly hashtags: string;
  readonly pending_post_id: string;
  readonly reply_count: number;
  readonly last_reply_at: number;
  readonly file_ids?: readonly string[];
  readonly remote_id?: string;
}

export interface Reaction {
  readonly user_id: string;
  readonly post_id: string;
  readonly emoji_name: string;
  readonly create_at: number;
  readonly update_at: number;
  readonly delete_at: number;
  readonly remote_id: string;
  readonly channel_id: string;
}

export interface FileInfo {
  readonly id: string;
  readonly user_id: string;
  readonly channel_id: string;
  readonly post_id: string;
  readonly create_at: number;
  readonly update_at: number;
  readonly delete_at: number;
  readonly name: string;
  readonly extension: string;
  readonly size: number;
  readonly mime_type: string;
  readonly width: number;
  readonly height: number;
  readonly has_preview_image: boolean;
  readonly archived: boolean;
}

/** A refusal with the id and status that the server would send. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly id: string, message = "Refused by the double.") {
    super(message);
    this.name = "Refusal";
  }
}

const ALPHABET = "ybndrfg8ejkmcpqxot1uwisza345h769";

/** A fresh id: 26 characters of the server's own alphabet. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(26));
  return [...bytes].map((byte) => ALPHABET[byte % 32]).join("");
}

export const isId = (text: unknown): text is string =>
  typeof text === "string" && /^[a-z0-9]{26}$/.test(text);
