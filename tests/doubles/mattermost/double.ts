// The Mattermost double as a library: one server on a loopback port that speaks REST v4 and the
// WebSocket, what a test may do to it, and a record of everything that reached it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import { handleControl, isControl } from "./control.ts";
import { createHub, type Hub } from "./hub.ts";
import { AT_REST, type Knobs } from "./knobs.ts";
import { createOperations, type Operations } from "./operations.ts";
import { createPendingPosts } from "./pending_posts.ts";
import { createRateLimiter, type RateLimiter } from "./rate_limit.ts";
import { openRecord } from "./record.ts";
import { API, createRest, headersOf } from "./rest.ts";
import { createFaultQueue } from "./rest_faults.ts";
import { allRoutes } from "./routes.ts";
import { credentialOf, userOfToken } from "./sessions.ts";
import { openStore } from "./store.ts";
import { createClock, type World } from "./world.ts";

export interface MattermostOptions {
  /** 0 or absent = a free port. */
  readonly port?: number;
  /** Where state and record are kept; absent = in memory. */
  readonly folder?: string;
  readonly knobs?: Partial<Knobs>;
  /** Multiplies every duration of the server's own (5 s, 60 s, 100 s, 5 min); 1 when absent. */
  readonly timeScale?: number;
  /** Speaks TLS with this certificate (PEM); plain when absent. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** Every operation, answered as a promise whether the double is here or in another process. */
export type Remote<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

export interface MattermostDouble extends Operations {
  readonly port: number;
  /** `http://127.0.0.1:PORT`; the WebSocket is at `/api/v4/websocket` of the same address. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a server; it listens when the promise resolves. */
export async function startMattermostDouble(
  options: MattermostOptions = {},
): Promise<MattermostDouble> {
  let knobs: Knobs = { ...AT_REST, ...options.knobs };
  let isStopping = false;
  const store = openStore(options.folder ?? null);
  const record = openRecord(options.folder ?? null);
  const faults = createFaultQueue();
  const world: World = {
    store,
    knobs: () => knobs,
    ...createClock(store, () => knobs),
    scaled: (ms) => ms * (options.timeScale ?? 1),
    emit: (event) => hub.emit(event),
  };
  const hub: Hub = createHub({
    world,
    userOf: (token) => knobs.sessionsInvalid ? null : userOfToken(world, token)?.id ?? null,
    onSocket: (what, userId, detail) => record.add({ kind: "socket", what, userId, detail }),
  });
  const pending = createPendingPosts(world);
  const sockets = new Set<Socket>();
  const operations = createOperations({
    world,
    hub,
    record,
    faults,
    setKnobs: (next) => {
      knobs = next;
    },
    cutRequests: () => sockets.forEach((socket) => socket.destroy()),
    forgetPending: () => pending.forget(),
  });
  const limiter = createRateLimiter();
  const rest = createRest({
    world,
    limiter,
    routes: allRoutes(world, pending),
    record,
    faults,
    onActive: (userId) => hub.active(userId),
    isStopping: () => isStopping,
  });
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", "http://double");
    response.on("error", () => {});
    const handled = isControl(url)
      ? handleControl(request, response, url, operations)
      : rest(request, response, url);
    handled.catch((thrown) => {
      response.destroy();
      report(thrown, isStopping);
    });
  };
  const server = serverOf(serve, options.tls);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Uint8Array) => {
    sockets.delete(socket);
    upgrade({ request, socket, head, hub, knobs, limiter });
  });
  const port = await listening(server, options.port ?? 0);
  return {
    ...operations,
    port,
    url: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    stop: async () => {
      isStopping = true;
      hub.stop();
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      sockets.forEach((socket) => socket.destroy());
      await ended;
      store.close();
      record.close();
    },
  };
}

/** A client that went away, and a request that was cut while it came, are part of the play. */
function report(thrown: unknown, isStopping: boolean): void {
  if (!isStopping && !/ECONNRESET|aborted/.test(`${thrown}`)) console.error("double:", thrown);
}

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

function serverOf(serve: Serve, tls: MattermostOptions["tls"]): Server {
  return tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
}

async function listening(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return portOf(server.address());
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new TypeError("No port was bound");
  return address.port;
}

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function upgrade(parts: {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  readonly head: Uint8Array;
  readonly hub: Hub;
  readonly knobs: Knobs;
  readonly limiter: RateLimiter;
}): void {
  const { request, socket, head, hub, knobs, limiter } = parts;
  const url = new URL(request.url ?? "/", "http://double");
  const headers = headersOf(request);
  const refuse = (line: string) => {
    const head = `HTTP/1.1 ${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    socket.end(head, () => socket.destroy());
  };
  if (url.pathname.replace(/\/$/, "") !== `${API}/websocket`) return refuse("404 Not Found");
  if (limiter(knobs.rateLimit).isLimited) return refuse("429 Too Many Requests");
  if (knobs.upgradeRefused) return refuse("502 Bad Gateway");
  const origin = headers["origin"];
  if (origin !== undefined && origin.replace(/^https?:/, "") !== `//${headers["host"] ?? ""}`) {
    return refuse("403 Forbidden");
  }
  const key = headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1").update(key + GUID).digest("base64");
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const credential = credentialOf(headers, url.searchParams);
  hub.accept(socket, Buffer.from(head), url.searchParams, credential?.token ?? null);
}
