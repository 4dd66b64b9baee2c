// A double with an owner, a bot and their direct channel, and a plain client of both wires for the
// double's own tests. The client is written apart from the product's.
import { type MattermostDouble, type MattermostOptions, startMattermostDouble } from "./double.ts";

export interface Rig {
  readonly double: MattermostDouble;
  readonly owner: { readonly id: string; readonly token: string };
  readonly bot: { readonly id: string; readonly token: string };
  readonly dm: string;
}

/** A fresh double, or one found again in its folder, with "owner", "boxmaker" and their channel. */
export async function startRig(options: MattermostOptions = {}): Promise<Rig> {
  const double = await startMattermostDouble(options);
  return { double, ...furnish(double) };
}

/** The two people and their channel; what is there already is kept. */
export function furnish(double: MattermostDouble) {
  const person = (username: string, isBot: boolean) => {
    const user = double.userNamed(username) ?? double.addUser({ username, isBot });
    return { id: user.id, token: double.addToken(user.id, `${username}-token`) };
  };
  const owner = person("owner", false);
  const bot = person("boxmaker", true);
  return { owner, bot, dm: double.directChannel(bot.id, owner.id).id };
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON; tests read into it freely. */
  readonly json: Json;
}

/** JSON as tests read it: any member, any depth. */
export interface Json {
  readonly [key: string]: Json;
}

export async function rest(
  rig: Rig,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(`${rig.double.url}/api/v4${path}`, {
    method,
    headers: { authorization: `Bearer ${rig.bot.token}`, ...headers },
    redirect: "manual",
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // Faults send what is no JSON; the test then looks at the text.
  }
}

export interface Wire {
  readonly seen: Json[];
  readonly closed: Promise<{ readonly code: number; readonly wasClean: boolean }>;
  readonly hasOpened: Promise<boolean>;
  /** The first message, seen already or to come, that holds; null after `withinMs`. */
  find(test: (message: Json) => boolean, withinMs?: number): Promise<Json | null>;
  send(message: unknown): void;
  sendText(text: string): void;
  end(): Promise<void>;
}

/** A socket of the bot's, signed in by its header unless `headers` says otherwise. */
export function wire(
  rig: Rig,
  query = "",
  headers: Record<string, string> = { authorization: `Bearer ${rig.bot.token}` },
): Wire {
  const url = `${rig.double.url.replace("http", "ws")}/api/v4/websocket${query}`;
  const socket = new WebSocket(url, { headers });
  const seen: Json[] = [];
  const closed = Promise.withResolvers<{ code: number; wasClean: boolean }>();
  const opened = Promise.withResolvers<boolean>();
  let wake = Promise.withResolvers<void>();
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => {};
  socket.onclose = (event) => {
    opened.resolve(false);
    closed.resolve({ code: event.code, wasClean: event.wasClean });
  };
  socket.onmessage = (event) => {
    seen.push(parsed(event.data));
    wake.resolve();
    wake = Promise.withResolvers();
  };
  return {
    seen,
    closed: closed.promise,
    hasOpened: opened.promise,
    find: async (test, withinMs = 2000) => {
      const late = Promise.withResolvers<"over">();
      const timer = setTimeout(() => late.resolve("over"), withinMs);
      try {
        for (;;) {
          const found = seen.find(test);
          if (found !== undefined) return found;
          if (await Promise.race([wake.promise, late.promise]) === "over") return null;
        }
      } finally {
        clearTimeout(timer);
      }
    },
    send: (message) => socket.send(JSON.stringify(message)),
    sendText: (text) => socket.send(text),
    end: async () => {
      socket.close();
      await closed.promise;
    },
  };
}

export const isEvent = (name: string) => (message: Json): boolean => `${message["event"]}` === name;
