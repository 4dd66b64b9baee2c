// A plain client of a Mattermost server for the checks of a device, written apart from gatewayd: one
// request, its answer with headers, and one signed-in socket with what it has seen.

export interface ServerPlace {
  /** `https://host[:port]`, without a path. */
  readonly url: string;
  readonly token: string;
  /** PEM of an authority of the owner's own, or null. */
  readonly certificates: string | null;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
  /** The server's error id, or what went wrong before an answer came. */
  readonly error: string;
}

/** JSON as a check reads it: any member, any depth; what is not there is undefined. */
export interface Json {
  readonly [key: string]: Json;
}

export interface Server extends AsyncDisposable {
  ask(method: string, path: string, body?: unknown): Promise<Answered>;
  listen(token?: string): Listening;
}

export interface Listening {
  readonly events: readonly Json[];
  /** The first message, seen or to come, that holds; null when it does not come in time. */
  find(holds: (message: Json) => boolean, withinMs: number): Promise<Json | null>;
  send(message: unknown): void;
  close(): Promise<void>;
}

const ASK_MS = 15_000;

function parsed(text: string): Json {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {}; // A proxy's page; the status tells.
  }
}

export function openServer({ url, token, certificates }: ServerPlace): Server {
  const client = certificates === null
    ? undefined
    : Deno.createHttpClient({ caCerts: [certificates] });
  const through = client === undefined ? {} : { client };
  return {
    async ask(method, path, body) {
      try {
        const reply = await fetch(`${url}/api/v4${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          redirect: "manual",
          signal: AbortSignal.timeout(ASK_MS),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          ...through,
        });
        const json = parsed(await reply.text());
        const error = reply.ok ? "" : `${reply.status} ${json.id ?? ""}`.trim();
        return { status: reply.status, headers: reply.headers, body: json, error };
      } catch (thrown) {
        const cause = thrown instanceof Error ? thrown.cause ?? thrown : thrown;
        const words = cause instanceof Error ? cause.message : `${cause}`;
        const error = words.replace(/^error sending request .*?\): /, "");
        return { status: 0, headers: new Headers(), body: {}, error };
      }
    },
    listen(as = token) {
      const address = `${url.replace(/^http/, "ws")}/api/v4/websocket`;
      const headers = { authorization: `Bearer ${as}` };
      return listening(new WebSocket(address, { headers, ...through }));
    },
    [Symbol.asyncDispose]() {
      client?.close();
      return Promise.resolve();
    },
  };
}

function listening(socket: WebSocket): Listening {
  const events: Json[] = [];
  const closed = Promise.withResolvers<void>();
  let wake = Promise.withResolvers<void>();
  socket.onerror = () => closed.resolve();
  socket.onclose = () => closed.resolve();
  socket.onmessage = ({ data }) => {
    events.push(parsed(data));
    wake.resolve();
    wake = Promise.withResolvers();
  };
  return {
    events,
    async find(holds, withinMs) {
      const late = Promise.withResolvers<"late">();
      const timer = setTimeout(() => late.resolve("late"), withinMs);
      try {
        for (;;) {
          const found = events.find(holds);
          if (found !== undefined) return found;
          const ended = closed.promise.then(() => "late" as const);
          if (await Promise.race([wake.promise, late.promise, ended]) === "late") {
            return events.find(holds) ?? null;
          }
        }
      } finally {
        clearTimeout(timer);
      }
    },
    send(message) {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
    async close() {
      socket.close();
      await closed.promise;
    },
  };
}
