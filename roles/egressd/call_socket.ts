// The port to the network: one socket for one call's program, and the client that dials for it.
//
// 1. A folder is 0711 and its socket 0666, because a container's user is a stranger on the host; both lie
//    below a folder of mode 0700 that no other user of the host can enter.
// 2. The client dials from an IPv4 address only: ranges of IPv6 cannot be denied by a flag.
// 3. No connection is used twice: when a reused one closes before its answer, the runtime sends the same
//    request again by itself, and one approval would have two effects.
import { messageOf } from "../../shared/results/result.ts";

export interface Client {
  fetch(url: string, init: RequestInit): Promise<Response>;
  close(): void;
}

/** The one client of this process. `caFile` adds certificate authorities. Throws when it has none. */
export function openClient(caFile: string | undefined): Client {
  const caCerts = caFile === undefined ? [] : [Deno.readTextFileSync(caFile)];
  const client = Deno.createHttpClient({
    localAddress: "0.0.0.0",
    caCerts,
    poolMaxIdlePerHost: 0,
  });
  return {
    fetch: (url, init) => fetch(url, { ...init, client }),
    close: () => client.close(),
  };
}

export interface CallSocket {
  /** Stops serving, ends what runs and removes the folder. */
  close(): Promise<void>;
}

/** Serves `handle` on `s.sock` in a new folder. Throws when it cannot be made. */
export function openCallSocket(
  folder: string,
  handle: (request: Request) => Promise<Response>,
  log: (line: string) => void,
): CallSocket {
  Deno.mkdirSync(folder, { mode: 0o711 });
  const path = `${folder}/s.sock`;
  const stop = new AbortController();
  try {
    Deno.chmodSync(folder, 0o711);
    const server = Deno.serve({
      transport: "unix",
      path,
      signal: stop.signal,
      onListen: () => {},
      onError(thrown) {
        log(`a request failed: ${messageOf(thrown)}`);
        return new Response("egressd: failed\n", { status: 502 });
      },
    }, handle);
    Deno.chmodSync(path, 0o666);
    return {
      async close() {
        stop.abort();
        await server.finished;
        removeFolder(folder);
      },
    };
  } catch (thrown) {
    stop.abort();
    removeFolder(folder);
    throw thrown;
  }
}

/** Makes the folder of all calls and empties it of what an earlier life left. */
export function emptyCallsFolder(folder: string): void {
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  Deno.chmodSync(folder, 0o700);
  for (const entry of Deno.readDirSync(folder)) removeFolder(`${folder}/${entry.name}`);
}

function removeFolder(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}
