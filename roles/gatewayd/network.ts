// The port to the network: the runtime's own fetch and WebSocket.
//
// 1. A reused connection that closes before its answer makes the runtime send the same request again by
//    itself, though the server may have carried it out. So whatever changes something gets a connection
//    of its own, and what became of it is this role's to find out.
// 2. Closing a WebSocket that was reset a moment ago makes the runtime reject a promise of its own that
//    nobody can catch; `isLostSocket` knows it, and gatewayd goes on.
// 3. A close handshake may never end, so an end is reported when it is asked for, and what comes later
//    is dropped.
import { err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { OpenWire } from "./connection.ts";

const MAX_SENT_BYTES = 8_192;

export interface Network {
  readonly fetch: typeof fetch;
  readonly open: OpenWire;
  close(): void;
}

/** The way to the server; `certificates` (PEM) are trusted beside the well-known authorities. */
export function networkOf(certificates: string | null): Result<Network> {
  const caCerts = certificates === null ? [] : [certificates];
  if (!caCerts.every((text) => text.includes("-----BEGIN CERTIFICATE-----"))) {
    return err("config-invalid", "ca_file holds no certificate in PEM form");
  }
  try {
    const kept = Deno.createHttpClient({ caCerts });
    const single = Deno.createHttpClient({ caCerts, poolMaxIdlePerHost: 0 });
    return ok({
      fetch: (input, init) =>
        fetch(input, { ...init, client: init?.method === "GET" ? kept : single }),
      open: (url, headers, on) => wireOf(new WebSocket(url, { headers, client: kept }), on),
      close() {
        kept.close();
        single.close();
      },
    });
  } catch (thrown) {
    return err("config-invalid", `ca_file cannot be used: ${messageOf(thrown)}`);
  }
}

/** Whether a rejection is the runtime's own about a socket: an error of the system, from no line of ours. */
export function isLostSocket(reason: unknown): boolean {
  return reason instanceof TypeError && /\(os error \d+\)$/.test(reason.message) &&
    !/\n\s+at /.test(reason.stack ?? "");
}

function wireOf(socket: WebSocket, on: Parameters<OpenWire>[2]): ReturnType<OpenWire> {
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    on.end();
  };
  socket.onopen = () => {
    if (!isOver) on.open();
  };
  socket.onmessage = ({ data }) => {
    if (!isOver && typeof data === "string") on.message(data);
  };
  socket.onerror = end;
  socket.onclose = end;
  return {
    send(text) {
      const fits = encodeUtf8(text).length <= MAX_SENT_BYTES;
      if (fits && socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close() {
      end();
      socket.close();
    },
  };
}
