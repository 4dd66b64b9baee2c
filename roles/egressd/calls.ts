// The calls that have a way out now. A way exists exactly as long as brokerd's connection that asked for
// it; when that ends, for whatever reason, the socket is gone.
import { aborted, type Clock, inTime } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { EgressdConfig } from "../../shared/config/egressd.ts";
import type { CallId } from "../../shared/ids/ids.ts";
import { err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { readHttpUrl } from "../../shared/url/origin.ts";
import { toBase64 } from "../../shared/wire/codec.ts";
import type {
  EGRESS_OPEN,
  EgressBody,
  EgressOpened,
  EgressRequest,
} from "../../shared/wire/egress.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { MAX_CHUNK_BYTES } from "../../shared/wire/limits.ts";
import type { Io } from "../../shared/wire/listen.ts";
import { type Client, openCallSocket } from "./call_socket.ts";
import { forward, isOwnHeader, type RequestLine, type Way } from "./forward.ts";

const MAX_CALLS = 32;
const GO_MS = 60_000;
/** Connections of a program beyond the requests that it may have at once. */
const SPARE_CONNECTIONS = 4;

export type CallsPorts = {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: EgressdConfig["limits"];
  readonly client: Client;
  /** Absolute path of the folder of all calls. */
  readonly folder: string;
  readonly log: (line: string) => void;
};

type Open = BodyOf<(typeof EGRESS_OPEN)["request"]>;
type OpenIo = Io<typeof EgressOpened | typeof EgressBody | typeof EgressRequest>;
type OpenCall = { waiting: { readonly n: number; go(mayLeave: boolean): void } | null };

export interface EgressCalls {
  /** Serves one call until its caller goes; the number of requests it made. */
  open(asked: Open, io: OpenIo): Promise<Result<number>>;
  /** Lets a recorded request go or drops it; fails with `not-found` when none waits. */
  go(call: CallId, n: number, mayLeave: "leave" | "drop"): Result<null>;
  count(): number;
}

export function egressCalls(ports: CallsPorts): EgressCalls {
  const calls = new Map<CallId, OpenCall>();
  return {
    count: () => calls.size,
    go(call, n, mayLeave) {
      const waiting = calls.get(call)?.waiting;
      if (waiting?.n !== n) return err("not-found", `No request ${n} of ${call} waits`);
      waiting.go(mayLeave === "leave");
      return ok(null);
    },
    async open(asked, io) {
      const problem = askedProblem(asked);
      if (problem !== null) return err("request-invalid", problem);
      if (calls.has(asked.call)) return err("request-invalid", `${asked.call} is open already`);
      if (calls.size >= MAX_CALLS) return err("egress-unavailable", `${MAX_CALLS} calls are open`);
      const call: OpenCall = { waiting: null };
      calls.set(asked.call, call);
      try {
        return await serveCall(ports, asked, io, call);
      } catch (thrown) {
        return err("egress-unavailable", `No socket for a call: ${messageOf(thrown)}`);
      } finally {
        calls.delete(asked.call);
      }
    },
  };
}

/** Nothing of a secret is in the sentence. */
function askedProblem({ origins, inject }: Open): string | null {
  if (!origins.every((one) => readHttpUrl(one)?.origin === one)) return "An origin is not exact";
  if (inject === null) return null;
  if (isOwnHeader(inject.header)) return `${inject.header} belongs to the connection`;
  if (/^[\x20-\x7e]+$/.test(inject.value)) return null;
  return `The value for ${inject.header} cannot stand in a header`;
}

async function serveCall(
  ports: CallsPorts,
  asked: Open,
  io: OpenIo,
  call: OpenCall,
): Promise<Result<number>> {
  const { limits, clock, client } = ports;
  const folder = `${ports.folder}/${ports.random.bytes(6).toHex()}`;
  let requests = 0;
  let admitted = 0;
  let running = 0;
  let turn: Promise<unknown> = Promise.resolve();
  const over = new AbortController();
  const way: Way = {
    origins: new Set(asked.origins),
    inject: asked.inject,
    requestBytes: limits.request_bytes,
    budget: { bytesLeft: limits.response_bytes },
    signal: over.signal,
    send: (url, init) => client.fetch(url, init),
    // Requests are recorded one after another, so that the pieces of two bodies never mix.
    record(line, body) {
      const next = turn.then(() => record(asked, io, call, clock, requests++, line, body));
      turn = next;
      return next;
    },
  };
  const most = limits.concurrent + SPARE_CONNECTIONS;
  const socket = openCallSocket(folder, most, async (request, info) => {
    if (admitted >= limits.requests || running >= limits.concurrent) {
      return new Response("egressd: too many requests\n", { status: 429 });
    }
    admitted++;
    running++;
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(limits.request_s * 1_000)]);
    const ended = () => void running--;
    info.completed.then(ended, ended);
    return await forward(request, { ...way, signal });
  }, ports.log);
  try {
    const isThere = await io.event({ kind: "opened", body: { folder } });
    if (isThere) await aborted(io.signal);
  } finally {
    over.abort();
    call.waiting?.go(false);
    await socket.close();
  }
  return ok(requests);
}

async function record(
  asked: Open,
  io: OpenIo,
  call: OpenCall,
  clock: Clock,
  n: number,
  line: RequestLine,
  body: Uint8Array,
): Promise<boolean> {
  const waits = asked.log_payload && line.refused === null;
  for (let at = 0; waits && at < body.length; at += MAX_CHUNK_BYTES) {
    const base64 = toBase64(body.subarray(at, at + MAX_CHUNK_BYTES));
    if (!await io.event({ kind: "request_body", body: { n, base64 } })) return false;
  }
  const answer = Promise.withResolvers<boolean>();
  if (waits) call.waiting = { n, go: answer.resolve };
  if (!await io.event({ kind: "request", body: { n, ...line } })) return false;
  if (!waits) return true;
  const mayLeave = await inTime(clock, answer.promise, GO_MS, false);
  call.waiting = null;
  return mayLeave;
}
