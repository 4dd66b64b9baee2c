// egressd under its real flags for tests, an origin of our own on loopback, and programs' requests as
// they look on a call's socket.
import { type CallId, CallId as CallIdSchema, ulid } from "../../../shared/ids/ids.ts";
import { systemRandom } from "../../../shared/clock/random.ts";
import { call } from "../../../shared/wire/dial.ts";
import { closeQuietly } from "../../../shared/wire/frame.ts";
import {
  EGRESS_OPEN,
  EGRESS_STATUS,
  type EgressBody,
  type EgressOpened,
  type EgressRequest,
} from "../../../shared/wire/egress.ts";
import type { BodyOf, Said } from "../../../shared/wire/exchange.ts";
import { socketPath } from "../../../shared/wire/sockets.ts";

const SOURCE = decodeURIComponent(new URL("../../../", import.meta.url).pathname).replace(
  /\/$/,
  "",
);

export type EgressEvent = Said<typeof EgressOpened | typeof EgressBody | typeof EgressRequest>;
type Asked = Partial<BodyOf<(typeof EGRESS_OPEN)["request"]>>;

export interface OpenWay extends AsyncDisposable {
  readonly call: CallId;
  readonly folder: string;
  readonly events: EgressEvent[];
  /** Sends bytes on the call's socket and gives all that comes back. */
  raw(text: string): Promise<string>;
  /** A GET in absolute form; status line and body. */
  get(url: string, headers?: string): Promise<{ status: number; text: string; all: string }>;
  close(): Promise<void>;
}

export interface EgressRig extends AsyncDisposable {
  readonly home: string;
  readonly pid: number;
  open(asked: Asked, onEvent?: (event: EgressEvent) => Promise<void>): Promise<OpenWay>;
}

/** Starts egressd by the real launcher with `toml` as its configuration. */
export async function startEgressd(toml: string): Promise<EgressRig> {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  Deno.mkdirSync(`${home}/config`, { mode: 0o700 });
  Deno.writeTextFileSync(`${home}/config/egressd.toml`, toml, { mode: 0o600 });
  const child = new Deno.Command("/bin/sh", {
    args: [`${SOURCE}/launch/serve`, "egressd"],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  const path = socketPath(home, "broker-egress/egress");
  for (let i = 0;; i++) {
    const answer = await call(path, EGRESS_STATUS, {});
    if (answer.ok) break;
    if (i > 600) throw new Error(`egressd does not answer: ${answer.detail}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    home,
    pid: child.pid,
    open: (asked, onEvent) => openWay(path, asked, onEvent ?? (() => Promise.resolve())),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
      Deno.removeSync(home, { recursive: true });
    },
  };
}

/** Opens a call's way out as brokerd does, at egressd's socket. */
export async function openWay(
  path: string,
  asked: Asked,
  onEvent: (event: EgressEvent) => Promise<void>,
): Promise<OpenWay> {
  const id = asked.call ?? CallIdSchema.parse(`c-${ulid(Date.now(), systemRandom)}`);
  const events: EgressEvent[] = [];
  const stop = new AbortController();
  const opened = Promise.withResolvers<string>();
  const body = { call: id, origins: [], inject: null, log_payload: false, ...asked };
  const over = call(path, EGRESS_OPEN, body, {
    signal: stop.signal,
    onEvent: async (event) => {
      events.push(event);
      if (event.kind === "opened") opened.resolve(event.body.folder);
      await onEvent(event);
    },
  });
  over.then((ended) => {
    if (!ended.ok) opened.reject(new Error(`${ended.code}: ${ended.detail}`));
  });
  const folder = await opened.promise;
  const close = async () => {
    stop.abort();
    await over;
  };
  const raw = (text: string) => exchangeBytes(`${folder}/s.sock`, text);
  return {
    call: id,
    folder,
    events,
    raw,
    async get(url, headers = "") {
      const host = url.replace(/^[a-z]+:\/\/([^/]*).*$/, "$1");
      const all = await raw(
        `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`,
      );
      const status = Number(/^HTTP\/1\.1 ([0-9]{3})/.exec(all)?.[1] ?? 0);
      return { status, text: all.slice(all.indexOf("\r\n\r\n") + 4), all };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function exchangeBytes(path: string, text: string): Promise<string> {
  const conn = await Deno.connect({ transport: "unix", path });
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  await conn.write(bytes);
  let all = "";
  const buffer = new Uint8Array(65_536);
  // Whoever does not answer a broken request does not answer it later either.
  const late = setTimeout(() => conn.close(), 3_000);
  try {
    for (;;) {
      const read = await conn.read(buffer);
      if (read === null) break;
      all += new TextDecoder().decode(buffer.subarray(0, read));
    }
  } catch {
    // A reset is the end as well; what came before it counts.
  } finally {
    clearTimeout(late);
    closeQuietly(conn);
  }
  return all;
}

export interface Origin extends AsyncDisposable {
  readonly port: number;
  /** Every request that came, as `METHOD url` and its headers. */
  readonly seen: { readonly line: string; readonly headers: Headers; readonly body: string }[];
}

type Tls = { readonly cert: string; readonly key: string };

/** A server on loopback, with TLS when a certificate is given. */
export function startOrigin(
  answer: (request: Request) => Response | Promise<Response>,
  tls?: Tls,
): Origin {
  const seen: Origin["seen"] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...(tls ?? {}) };
  const server = Deno.serve(options, async (request) => {
    const body = await request.clone().text();
    seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    return await answer(request);
  });
  return {
    port: server.addr.port,
    seen,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A certificate authority and a certificate of it for localhost, made now by openssl. */
export async function makeCertificates(
  folder: string,
): Promise<{ ca: string; tls: Tls }> {
  const run = async (...args: string[]) => {
    const { success, stderr } = await new Deno.Command("openssl", { args, cwd: folder }).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
  };
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  await run(
    "req",
    "-x509",
    ...ec,
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
    "-days",
    "30",
    "-subj",
    "/CN=bx test",
  );
  await run("req", ...ec, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost");
  Deno.writeTextFileSync(
    `${folder}/ext`,
    "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n",
  );
  await run(
    "x509",
    "-req",
    "-in",
    "own.csr",
    "-CA",
    "ca.pem",
    "-CAkey",
    "ca.key",
    "-CAcreateserial",
    "-days",
    "30",
    "-extfile",
    "ext",
    "-out",
    "own.pem",
  );
  const read = (name: string) => Deno.readTextFileSync(`${folder}/${name}`);
  return { ca: `${folder}/ca.pem`, tls: { cert: read("own.pem"), key: read("own.key") } };
}
