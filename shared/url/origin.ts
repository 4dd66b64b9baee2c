// The one reading of a URL: what grants are matched by is what is dialled.
// 1. What this refuses is refused everywhere; nothing is repaired beyond what the URL standard folds
//    (case, `:443` on https, the spellings of an IPv4 address, punycode).
// 2. No user-info, no host with a trailing dot, no control character, blank or backslash anywhere.

const MAX_URL = 8_192;
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:]+\])$/;
const DOTTED = /^[^/]*\/\/[^/?#]*\.(?::[0-9]*)?(?:[/?#]|$)/;

export type HttpUrl = {
  /** `scheme://host:port`, lower case, the port always written out. */
  readonly origin: string;
  /** The whole URL in its one spelling, without fragment. */
  readonly href: string;
};

/** Reads an absolute http or https URL; null when it is none or is written suspiciously. */
export function readHttpUrl(text: string): HttpUrl | null {
  if (text.length > MAX_URL || /[\s\p{Cc}\p{Cf}\\]/u.test(text) || !URL.canParse(text)) return null;
  if (!/^https?:\/\/[^/?#]/i.test(text)) return null;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || /^[^/?#]*\/\/[^/?#]*@/.test(text)) return null;
  if (!HOST.test(url.hostname) || DOTTED.test(text) || url.port === "0") return null;
  url.hash = "";
  const port = url.port !== "" ? url.port : url.protocol === "https:" ? "443" : "80";
  return { origin: `${url.protocol}//${url.hostname}:${port}`, href: url.href };
}

/** Whether a program that follows the URL standard would take `text` for an http or https URL. */
export function looksLikeHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
