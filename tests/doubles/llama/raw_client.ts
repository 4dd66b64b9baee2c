// A plain HTTP client for the double's tests: it sees every read, whether headers came, and whether
// the body ended properly, which an ordinary client hides.
import { isObject, type JsonObject, listOf, parsed } from "./json_value.ts";

export type RawAnswer = {
  readonly status: number;
  readonly head: string;
  /** The decoded body. */
  readonly text: string;
  /** Each read after the headers, as it arrived (chunk framing included). */
  readonly reads: readonly Uint8Array[];
  /** `clean`: the length was met or the chunk terminator came. */
  readonly ending: "clean" | "cut";
};

export type RawStream = {
  /** Resolves when the body holds this text; rejects when it ends without it. */
  seen(text: string): Promise<void>;
  /** All bytes so far, as text. */
  soFar(): string;
  /** Whether any byte has arrived. */
  hasBytes(): boolean;
  answer(): Promise<RawAnswer>;
  /** Drops the connection. */
  leave(): void;
};

const encoder = new TextEncoder();

/** Sends a request and leaves the reading to the caller. */
export async function openRaw(
  port: number,
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawStream> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  const lines = Object.entries(headers).map(([k, v]) => `${k}: ${v}\r\n`).join("");
  const length = encoder.encode(text).length;
  const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n`;
  const bytes = encoder.encode(`${head}${lines}Connection: close\r\n\r\n${text}`);
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
  return streamOf(conn);
}

function streamOf(conn: Deno.TcpConn): RawStream {
  const reads: Uint8Array[] = [];
  let ended = false;
  let closed = false;
  const waiters = new Set<() => void>();
  const close = () => {
    if (!closed) conn.close();
    closed = true;
  };
  const pump = async () => {
    const buffer = new Uint8Array(64 * 1024);
    while (true) {
      const n = await conn.read(buffer).catch(() => null);
      if (n === null) break;
      reads.push(buffer.slice(0, n));
      for (const wake of waiters) wake();
    }
    ended = true;
    close();
    for (const wake of waiters) wake();
  };
  const pumping = pump();
  const all = () => new TextDecoder().decode(Uint8Array.from(reads.flatMap((r) => [...r])));
  return {
    soFar: all,
    hasBytes: () => reads.length > 0,
    seen: async (text) => {
      while (!all().includes(text)) {
        if (ended) throw new Error(`The stream ended without ${text}: ${all()}`);
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiters.delete(wake);
            resolve();
          };
          waiters.add(wake);
        });
      }
    },
    answer: async () => {
      await pumping;
      return answerOf(reads);
    },
    leave: close,
  };
}

function answerOf(reads: readonly Uint8Array[]): RawAnswer {
  const bytes = Uint8Array.from(reads.flatMap((r) => [...r]));
  // One character per byte keeps offsets right while the framing is taken apart.
  const raw = Array.from(bytes, (b) => String.fromCharCode(b)).join("");
  const end = raw.indexOf("\r\n\r\n");
  const head = end < 0 ? raw : raw.slice(0, end);
  const rest = end < 0 ? "" : raw.slice(end + 4);
  const decode = (s: string) =>
    new TextDecoder().decode(Uint8Array.from(s, (c) => c.charCodeAt(0)));
  const status = Number(head.slice(9, 12));
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const ending = rest.length === Number(length) ? "clean" : "cut";
    return { status, head, text: decode(rest), reads, ending };
  }
  let body = "";
  let at = 0;
  while (at < rest.length) {
    const line = rest.indexOf("\r\n", at);
    const size = Number.parseInt(rest.slice(at, line), 16);
    if (size === 0) return { status, head, text: decode(body), reads, ending: "clean" };
    body += rest.slice(line + 2, line + 2 + size);
    at = line + 4 + size;
  }
  return { status, head, text: decode(body), reads, ending: "cut" };
}

export async function raw(
  port: number,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  return await (await openRaw(port, method, path, body, headers)).answer();
}

/** The JSON body of a request's answer. */
export async function json(
  port: number,
  method: string,
  path: string,
  body?: unknown,
): Promise<JsonObject> {
  const value = parsed((await raw(port, method, path, body)).text);
  return isObject(value) ? value : { list: value };
}

/** A completion request's answer. */
export function ask(
  port: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  return raw(port, "POST", "/v1/chat/completions", body, headers);
}

export function openAsk(
  port: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawStream> {
  return openRaw(port, "POST", "/v1/chat/completions", body, headers);
}

/** The JSON of every `data:` event but the last `[DONE]`. */
export function events(text: string): JsonObject[] {
  return text.split("\n\n").flatMap((block) => {
    const value = block.startsWith("data: ") ? parsed(block.slice(6)) : undefined;
    return isObject(value) ? [value] : [];
  });
}

export type Said = {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly finish: string | null;
  /** What kind each event is, in order. */
  readonly kinds: readonly string[];
  readonly timings: JsonObject;
  readonly usage: JsonObject;
  readonly done: boolean;
};

/** What a well-behaved client makes of a stream. */
export function said(text: string): Said {
  let content = "";
  let reasoning = "";
  let finish: string | null = null;
  let timings: JsonObject = {};
  let usage: JsonObject = {};
  const calls: { id: string; name: string; args: string }[] = [];
  const kinds: string[] = [];
  for (const event of events(text)) {
    const choice = listOf(event["choices"])[0];
    const delta = isObject(choice) && isObject(choice["delta"]) ? choice["delta"] : {};
    kinds.push(kindOf(event, delta));
    if (isObject(event["timings"])) timings = event["timings"];
    if (isObject(event["usage"])) usage = event["usage"];
    if (isObject(choice) && typeof choice["finish_reason"] === "string") {
      finish = choice["finish_reason"];
    }
    if (typeof delta["content"] === "string") content += delta["content"];
    if (typeof delta["reasoning_content"] === "string") reasoning += delta["reasoning_content"];
    for (const entry of listOf(delta["tool_calls"])) addCall(calls, entry);
  }
  const done = text.includes("data: [DONE]\n\n");
  return { content, reasoning, calls, finish, kinds, timings, usage, done };
}

function addCall(calls: { id: string; name: string; args: string }[], entry: unknown): void {
  if (!isObject(entry) || !isObject(entry["function"])) return;
  const index = Number(entry["index"]);
  const known = calls[index] ?? { id: "", name: "", args: "" };
  const fn = entry["function"];
  calls[index] = {
    id: typeof entry["id"] === "string" ? entry["id"] : known.id,
    name: typeof fn["name"] === "string" ? fn["name"] : known.name,
    args: known.args + (typeof fn["arguments"] === "string" ? fn["arguments"] : ""),
  };
}

function kindOf(event: JsonObject, delta: JsonObject): string {
  if (isObject(event["error"])) return "error";
  if (isObject(event["prompt_progress"])) return "progress";
  if (listOf(event["choices"]).length === 0) return isObject(event["usage"]) ? "usage" : "unknown";
  if ("role" in delta) return "role";
  if ("reasoning_content" in delta) return "reasoning";
  if ("content" in delta) return "content";
  if ("tool_calls" in delta) return "call";
  return "finish";
}
