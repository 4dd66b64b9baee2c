// The double's operations over its own loopback address, for tests that run it as a process:
// `POST /double/NAME` with the arguments as a JSON list. Never recorded, never limited.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Remote } from "./double.ts";
import { type Operations } from "./operations.ts";
import { bytesOf } from "./rest.ts";

const PREFIX = "/double/";

export const isControl = (url: URL): boolean => url.pathname.startsWith(PREFIX);

export async function handleControl(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  operations: Operations,
): Promise<void> {
  const name = url.pathname.slice(PREFIX.length);
  const args: unknown = JSON.parse(new TextDecoder().decode(await bytesOf(request)));
  const found = Object.entries(operations).find(([own]) => own === name)?.[1];
  const send = (status: number, body: unknown) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(body ?? null));
  };
  if (found === undefined || !Array.isArray(args)) return send(404, `No operation ${name}`);
  try {
    send(200, Reflect.apply(found, undefined, args));
  } catch (thrown) {
    send(400, thrown instanceof Error ? thrown.message : `${thrown}`);
  }
}

/** The operations of a double in another process, by its address. */
export function controlOf(url: string): Remote<Operations> {
  const call = async (name: string, args: readonly unknown[]) => {
    const response = await fetch(`${url}${PREFIX}${name}`, {
      method: "POST",
      body: JSON.stringify(args),
    });
    const body = await response.json();
    if (!response.ok) throw new TypeError(`The double refused ${name}: ${body}`);
    return body;
  };
  const bound = <K extends keyof Operations>(name: K) => (...args: unknown[]) => call(name, args);
  return {
    addUser: bound("addUser"),
    userNamed: bound("userNamed"),
    addToken: bound("addToken"),
    revokeToken: bound("revokeToken"),
    setDisabled: bound("setDisabled"),
    directChannel: bound("directChannel"),
    addChannel: bound("addChannel"),
    setMembers: bound("setMembers"),
    archiveChannel: bound("archiveChannel"),
    postAs: bound("postAs"),
    webhookPost: bound("webhookPost"),
    editAs: bound("editAs"),
    deleteAs: bound("deleteAs"),
    reactAs: bound("reactAs"),
    unreactAs: bound("unreactAs"),
    uploadAs: bound("uploadAs"),
    purgePost: bound("purgePost"),
    postsIn: bound("postsIn"),
    post: bound("post"),
    reactionsOf: bound("reactionsOf"),
    fileText: bound("fileText"),
    set: bound("set"),
    calm: bound("calm"),
    fault: bound("fault"),
    faultsLeft: bound("faultsLeft"),
    drop: bound("drop"),
    skipSeq: bound("skipSeq"),
    announce: bound("announce"),
    sendRaw: bound("sendRaw"),
    forgetConnections: bound("forgetConnections"),
    reap: bound("reap"),
    overflow: bound("overflow"),
    sockets: bound("sockets"),
    bounce: bound("bounce"),
    traffic: bound("traffic"),
  };
}
