// One page as text. Everything that comes is untrusted: it is read up to a cap, decoded, and made plain.
// A redirect is followed here, hop by hop; each hop passes the container's own wall and egressd's anew.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { countArgument, textArgument, type ToolBody } from "../../shared/tool/sdk.ts";
import { readHttpUrl } from "../../shared/url/origin.ts";
import { decodeAs, encodeUtf8 } from "../../shared/wire/codec.ts";
import { readableText } from "./readable.ts";

const MAX_HOPS = 5;
const MAX_PAGE_BYTES = 4_194_304;
const DEFAULT_BYTES = 65_536;

/** Sends one GET and follows nothing; throws when there is no answer. */
export type Get = (url: string) => Promise<Response>;

type Page = { readonly url: string; readonly answer: Response; readonly hops: number };

/** The tool's body over `get`. The output names the page's address, then holds its text. */
export function httpFetch(get: Get): ToolBody {
  return async (call) => {
    const limit = countArgument(call, "max_bytes", DEFAULT_BYTES);
    const page = await follow(get, textArgument(call, "url"));
    if (!page.ok) return page;
    const { url, answer, hops } = page.value;
    const type = (answer.headers.get("content-type") ?? "text/plain").toLowerCase();
    if (!/^(?:text\/|application\/(?:[a-z0-9.+-]*\+)?(?:json|xml)\b)/.test(type)) {
      await answer.body?.cancel();
      return err("not-text", `The page is ${type.replace(/[^a-z0-9/+.-].*$/, "")}, not text`);
    }
    const raw = await firstBytes(answer);
    if (!raw.ok) return raw;
    const isHtml = /^(?:text\/html|application\/xhtml\+xml)/.test(type);
    const plain = decodeAs(raw.value.bytes, charsetOf(type, isHtml ? raw.value.bytes : null));
    const text = encodeUtf8(isHtml ? readableText(plain, url) : plain);
    const kept = wholeCharacters(text, limit);
    await call.write(`Page: ${url}\n\n`);
    await call.write(kept);
    const cut = kept.length < text.length || raw.value.isCut
      ? `, cut: ${kept.length} bytes of the text are shown`
      : "";
    return ok(`status ${answer.status}, ${hops} redirects followed${cut}`);
  };
}

async function follow(get: Get, first: string): Promise<Result<Page, string>> {
  let next = first;
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    const url = readHttpUrl(next);
    if (url === null) return err("bad-url", "The address is not a plain http or https URL");
    const answer = await ask(get, url.href, url.origin);
    if (!answer.ok) return answer;
    const location = answer.value.headers.get("location");
    if (answer.value.status < 300 || answer.value.status > 399 || location === null) {
      return ok({ url: url.href, answer: answer.value, hops });
    }
    await answer.value.body?.cancel();
    if (!URL.canParse(location, url.href)) return err("bad-redirect", "The page leads nowhere");
    next = new URL(location, url.href).href;
  }
  return err("too-many-redirects", `The page leads on more than ${MAX_HOPS} times`);
}

async function ask(get: Get, url: string, origin: string): Promise<Result<Response, string>> {
  const denied = err("not-granted", `${origin} is not among the origins of the owner's grant`);
  try {
    const answer = await get(url);
    if (answer.headers.get("x-egressd") === null) return ok(answer);
    await answer.body?.cancel();
    return answer.status === 403 ? denied : err("no-answer", `There is no answer from ${origin}`);
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === "NotCapable") return denied;
    return err("no-answer", `There is no answer from ${origin}`);
  }
}

type Bytes = { readonly bytes: Uint8Array; readonly isCut: boolean };

async function firstBytes(answer: Response): Promise<Result<Bytes, string>> {
  const gathered = new Uint8Array(MAX_PAGE_BYTES);
  let filled = 0;
  try {
    for await (const piece of answer.body ?? []) {
      const part = piece.subarray(0, MAX_PAGE_BYTES - filled);
      gathered.set(part, filled);
      filled += part.length;
      if (part.length < piece.length) return ok({ bytes: gathered, isCut: true });
    }
  } catch {
    return err("no-answer", "The page broke off while it was read");
  }
  return ok({ bytes: gathered.subarray(0, filled), isCut: false });
}

/** The charset that the answer or the head of an HTML page names; UTF-8 when neither does. */
function charsetOf(type: string, html: Uint8Array | null): string {
  const name = /charset\s*=\s*["']?([a-z0-9_.:-]+)/;
  const head = html === null ? "" : decodeAs(html.subarray(0, 1_024), "latin1").toLowerCase();
  return name.exec(type)?.[1] ?? name.exec(head)?.[1] ?? "utf-8";
}

/** At most `limit` bytes of UTF-8, cut between characters. */
function wholeCharacters(text: Uint8Array, limit: number): Uint8Array {
  let end = Math.min(limit, text.length);
  while (end > 0 && end < text.length && ((text[end] ?? 0) & 0xc0) === 0x80) end--;
  return text.subarray(0, end);
}
