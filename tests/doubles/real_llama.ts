// The real llama-server with the small real model, for tests and measurements. It exists only after
// `sh deploy/bootstrap.sh model`; a test that finds none skips itself by name (REAL_LLAMA_MISSING).
//
// The server belongs to this process: it ends with stop(), and with the process in any case.

const DEPLOY = decodeURIComponent(new URL("../../deploy/", import.meta.url).pathname);

/** What a skipped test says. */
export const REAL_LLAMA_MISSING = "no real model server here: sh deploy/bootstrap.sh model";

export type RealLlama = {
  /** Loopback port, model loaded, template and context as deploy/llama_server.sh says. */
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
};

/** True when `model` has run on this machine; looks, starts nothing. */
export function hasRealLlama(): boolean {
  const found = new Deno.Command("sh", {
    args: [`${DEPLOY}model.sh`, "--where"],
    stdout: "null",
    stderr: "null",
  }).outputSync();
  return found.success;
}

/**
 * Starts the server on a free port, or on the given one, and waits until the model is loaded.
 *
 * @returns null when `model` has not been run here
 * Throws when the server is there but does not come up; its last lines are in the message.
 */
export async function startRealLlama(
  options: { readonly port?: number } = {},
): Promise<RealLlama | null> {
  if (!hasRealLlama()) return null;
  return await served("sh", [
    `${DEPLOY}llama_server.sh`,
    "--port",
    String(options.port ?? 0),
  ]);
}

/**
 * Starts the same server as a router over the small model, which is not loaded yet and sleeps after
 * `sleepS` idle seconds; null when `model` has not been run here.
 */
export async function startRealRouter(
  options: { readonly model: string; readonly sleepS: number },
): Promise<RealLlama | null> {
  const found = new Deno.Command("sh", {
    args: [`${DEPLOY}model.sh`, "--where"],
    stderr: "null",
  }).outputSync();
  const where = new TextDecoder().decode(found.stdout);
  const [server, model, template] = ["server", "model", "template"].map((name) =>
    new RegExp(`^${name}=(.+)$`, "m").exec(where)?.[1]
  );
  if (!found.success || server === undefined) return null;
  const preset = await Deno.makeTempFile({ suffix: ".ini" });
  await Deno.writeTextFile(
    preset,
    `version = 1\n[${options.model}]\nmodel = ${model}\njinja = true\n` +
      `chat-template-file = ${template}\nctx-size = 16384\nparallel = 2\nthreads = 1\n` +
      `batch-size = 512\nsleep-idle-seconds = ${options.sleepS}\n`,
  );
  const words = `--models-preset ${preset} --models-max 1 --host 127.0.0.1 --port 0 --offline`;
  const args = ["--pdeathsig", "TERM", server, ...words.split(" "), "--no-ui"];
  const router = await served("setpriv", args);
  return {
    ...router,
    stop: async () => {
      await router.stop();
      await Deno.remove(preset);
    },
  };
}

async function served(program: string, args: readonly string[]): Promise<RealLlama> {
  const child = new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const log = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  const port = await readPort(log);
  if (port === null) {
    const status = await child.status;
    throw new Error(`llama-server ended with ${status.code} before it listened`);
  }
  const drained = drain(log);
  return {
    port,
    pid: child.pid,
    stop: async () => {
      try {
        child.kill("SIGTERM");
      } catch {
        // It has ended by itself.
      }
      await child.status;
      await drained;
    },
  };
}

type LogReader = ReadableStreamDefaultReader<string>;

/** The port of the line that says the server listens; null when the log ends without it. */
async function readPort(log: LogReader): Promise<number | null> {
  let seen = "";
  for (;;) {
    const { value, done } = await log.read();
    if (done) {
      console.error(seen.slice(-2_000));
      return null;
    }
    seen = (seen + value).slice(-65_536);
    const match = /listening on http:\/\/127\.0\.0\.1:(\d+)\s/.exec(seen);
    if (match) return Number(match[1]);
  }
}

/** Reads the rest of the log so that the server never waits for a reader. */
async function drain(log: LogReader): Promise<void> {
  while (!(await log.read()).done);
}
