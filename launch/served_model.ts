// Which model server a house talks to: one that is given or found, the real small one, or the
// rehearsal, a rule-based stand-in that says so.
import { dirname } from "node:path";
import type { Program } from "./supervisor.ts";

export interface ServedModel {
  readonly name: string;
  /** `host:port`, for inferproxy's configuration. */
  readonly address: string;
  /** The program to keep running, or null when somebody else runs the server. */
  readonly program: Program | null;
  /** The file of example exchanges that this model needs, if any. */
  readonly examples: string | null;
}

const LOOPBACK_PORTS = [8080, 9931];

/** A server at `url` (http, host and port), which somebody else runs. Throws on another form. */
export function givenModel(url: string): ServedModel {
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" || parsed.pathname !== "/") {
    throw new TypeError(`Not a model server's address (http://host:port): ${url}`);
  }
  const address = `${parsed.hostname}:${parsed.port === "" ? "80" : parsed.port}`;
  return {
    name: `the server at ${address}`,
    address,
    program: null,
    examples: null,
  };
}

/** A llama-server that already runs on this machine at a usual port, or null. */
export async function foundModel(): Promise<ServedModel | null> {
  for (const port of LOOPBACK_PORTS) {
    try {
      const url = `http://127.0.0.1:${port}/props?autoload=false`;
      const reply = await fetch(url, { signal: AbortSignal.timeout(500) });
      const text = await reply.text();
      if (reply.ok && text.includes("build_info")) return givenModel(`http://127.0.0.1:${port}`);
    } catch {
      // Nobody there: the next port, or none.
    }
  }
  return null;
}

/** A free loopback port, as free as a moment ago. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

/** The real small model that `sh deploy/bootstrap.sh model` makes; throws when it is not there. */
export function smallModel(source: string): ServedModel {
  const where = new Deno.Command("/bin/sh", {
    args: [`${source}/deploy/model.sh`, "--where"],
    stderr: "null",
  }).outputSync();
  if (!where.success) {
    throw new Error("There is no small model here yet: run sh deploy/bootstrap.sh model");
  }
  const port = freePort();
  return {
    name: "SmolLM2 135M on a real llama-server",
    address: `127.0.0.1:${port}`,
    program: {
      name: "model",
      argv: ["/bin/sh", `${source}/deploy/llama_server.sh`, "--port", String(port)],
      env: modelEnvironment(),
    },
    examples: `${source}/deploy/config/examples.smollm2.json`,
  };
}

function modelEnvironment(): Record<string, string> {
  const names = ["HOME", "BOXMAKER_CACHE", "XDG_CACHE_HOME"];
  const entries = names.map((name) => [name, Deno.env.get(name)] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => !!entry[1]));
}

/** The rehearsal model on a free port. It may reach nothing but that port. */
export function rehearsalModel(source: string): ServedModel {
  const port = freePort();
  const address = `127.0.0.1:${port}`;
  const argv = [
    Deno.execPath(),
    "run",
    "--no-prompt",
    "--cached-only",
    "--no-remote",
    "--frozen",
    `--config=${source}/deno.json`,
    `--allow-net=${address}`,
    `${source}/tests/doubles/llama/main.ts`,
    "--rehearsal",
    "--port",
    String(port),
  ];
  return {
    name: "the rehearsal model",
    address,
    program: {
      name: "model",
      argv,
      env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", HOME: dirname(source) },
    },
    examples: null,
  };
}
