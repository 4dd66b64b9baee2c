// Carries one request of a call: checks where it goes, has it recorded, makes it anew, cleans the answer.
//
// 1. The URL is read once; the same text is matched and dialled.
// 2. Nothing of the program's own connection passes: hop-by-hop headers, Host and framing are dropped,
//    injected headers are set last.
// 3. A redirect is handed back as it is; the next hop is a request of its own.
// 4. Whatever cannot be read, matched or told to brokerd is refused before a byte leaves.
import { sha256Hex } from "../../shared/tool/digest.ts";
import { readHttpUrl } from "../../shared/url/origin.ts";
import { readCapped } from "../../shared/wire/chunks.ts";

const HOP_HEADERS = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
];

/** Whether a header belongs to the connection or the framing, and is never set by anybody else. */
export function isOwnHeader(name: string): boolean {
  return [...HOP_HEADERS, "content-length"].includes(name.toLowerCase());
}

export type RequestLine = {
  readonly method: string;
  readonly url: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly refused: string | null;
};

export type Way = {
  readonly origins: ReadonlySet<string>;
  readonly inject: { readonly header: string; readonly value: string } | null;
  readonly requestBytes: number;
  /** Bytes of answers that may still come, over all requests of the call. */
  readonly budget: { bytesLeft: number };
  /** Records a request; false when it may not leave. */
  record(line: RequestLine, body: Uint8Array): Promise<boolean>;
  /** Dials and sends; throws when there is no answer. */
  send(url: string, init: RequestInit): Promise<Response>;
  readonly signal: AbortSignal;
};

export async function forward(request: Request, way: Way): Promise<Response> {
  const url = readHttpUrl(request.url);
  const body = await bodyOf(request, way);
  const refused = url === null
    ? "url_unreadable"
    : !way.origins.has(url.origin)
    ? "origin_not_granted"
    : body === null
    ? "body_too_large"
    : null;
  const bytes = body ?? new Uint8Array();
  const line: RequestLine = {
    method: request.method.slice(0, 32),
    url: (url?.href ?? request.url).toWellFormed().slice(0, 8_192),
    bytes: bytes.length,
    sha256: sha256Hex(bytes),
    refused,
  };
  const mayLeave = await way.record(line, bytes);
  if (url === null) return plain(400, "Only absolute http and https URLs are carried");
  if (refused === "origin_not_granted") return plain(403, `No grant for ${url.origin}`);
  if (refused !== null) return plain(413, `More than ${way.requestBytes} bytes`);
  if (!mayLeave) return plain(502, "The request could not be recorded");
  try {
    const answer = await way.send(url.href, {
      method: request.method,
      headers: headersOut(request.headers, way),
      body: bytes.length === 0 ? null : bytes,
      redirect: "manual",
      signal: way.signal,
    });
    return answerOf(answer, way);
  } catch {
    // The reason names addresses that the program need not know.
    return plain(502, `No answer from ${url.origin}`);
  }
}

function plain(status: number, text: string): Response {
  return new Response(`egressd: ${text}\n`, { status, headers: { "x-egressd": "refused" } });
}

/** The whole body, or null when it is longer than allowed. Throws when it does not come in time. */
function bodyOf({ body }: Request, { signal, requestBytes }: Way) {
  return readCapped(body?.pipeThrough(new TransformStream(), { signal }) ?? [], requestBytes);
}

function withoutHop(headers: Headers, more: readonly string[]): Headers {
  const named = (headers.get("connection") ?? "").split(",").map((one) => one.trim().toLowerCase());
  const dropped = new Set([...HOP_HEADERS, ...named, ...more]);
  return new Headers([...headers].filter(([name]) => !dropped.has(name)));
}

function headersOut(headers: Headers, way: Way): Headers {
  const out = withoutHop(headers, ["content-length", "accept-encoding"]);
  if (way.inject !== null) out.set(way.inject.header, way.inject.value);
  return out;
}

/** The answer, decoded as it comes and cut off with an error at the call's cap. */
function answerOf(answer: Response, way: Way): Response {
  const headers = withoutHop(answer.headers, ["content-length", "content-encoding", "x-egressd"]);
  const { status } = answer;
  if (status < 200 || status > 599) return plain(502, "An answer of another form");
  const counted = answer.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, out) {
        way.budget.bytesLeft -= piece.length;
        if (way.budget.bytesLeft < 0) out.error(new Error("The call's answers are too long"));
        else out.enqueue(piece);
      },
    }),
  );
  const isBare = status === 204 || status === 205 || status === 304;
  return new Response(isBare ? null : counted ?? null, { status, headers });
}
