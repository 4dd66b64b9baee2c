// inferproxy: one Unix socket in, one fixed model server out. It holds nothing and logs no byte.
import { boot } from "../../shared/boot/boot.ts";
import { InferproxyConfig } from "../../shared/config/inferproxy.ts";
import { listenRaw, removeSocket } from "../../shared/wire/listen.ts";
import { forward } from "./forwarder.ts";

const stderr = (line: string) => void Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));

const booted = boot("inferproxy", InferproxyConfig, Deno.env.get("BOXMAKER_HOME"), stderr);
if (!booted.ok) {
  stderr(`inferproxy: ${booted.code}: ${booted.detail}`);
  Deno.exit(1);
}
const { config, log, lock, socket } = booted.value;
const { address } = config.upstream;
const colon = address.lastIndexOf(":");
const hostname = address.slice(0, colon).replace(/^\[|\]$/g, "");
const port = Number(address.slice(colon + 1));

const path = socket("loop-infer/infer");
const listener = listenRaw(path);
const stopping = new AbortController();
forward(
  listener,
  () => Deno.connect({ hostname, port }),
  config.limits.connections,
  () => stopping.signal.aborted,
);
log.info(`started; forwards to ${address}`);

const stop = () => {
  stopping.abort();
  listener.close();
  removeSocket(path);
  lock.release();
  Deno.exit(0);
};
for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, stop);
