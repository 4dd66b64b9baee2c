// inferproxy: one Unix socket in, one fixed model server out. It holds nothing and logs no byte.
import { runRole } from "../../shared/boot/process.ts";
import { InferproxyConfig } from "../../shared/config/inferproxy.ts";
import { ok } from "../../shared/results/result.ts";
import { listenRaw, removeSocket } from "../../shared/wire/listen.ts";
import { forward } from "./forwarder.ts";

await runRole("inferproxy", InferproxyConfig, ({ config, socket, log }) => {
  const { address } = config.upstream;
  const colon = address.lastIndexOf(":");
  const hostname = address.slice(0, colon).replace(/^\[|\]$/g, "");
  const port = Number(address.slice(colon + 1));
  const path = socket("loop-infer/infer");
  const listener = listenRaw(path);
  const stopping = new AbortController();
  const dial = () => Deno.connect({ hostname, port });
  forward(listener, dial, config.limits.connections, () => stopping.signal.aborted);
  log.info(`started; forwards to ${address}`);
  return ok({
    // Connections under way end with the process: their callers see a broken answer and say so.
    stop() {
      stopping.abort();
      listener.close();
      removeSocket(path);
      return Promise.resolve();
    },
  });
});
