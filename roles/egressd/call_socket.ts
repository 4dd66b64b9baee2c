// The port to the network: one socket for one call's program, and the client that dials for it.
//
// 1. A folder is 0711 and its socket 0666, because a container's user is a stranger on the host; both lie
//    below a folder of mode 0700 that no other user of the host can enter.
// 2. The client dials from an IPv4 address only: ranges of IPv6 cannot be denied by a flag.
// 3. A program's connections wait, unaccepted, when it has as many as it may: it cannot take the
//    descriptors that other calls live on.
// 4. No connection is used twice: when a reused one closes before its answer, the runtime sends the same
//    request again by itself, and one approval would have two effects.
import { messageOf } from "../../shared/results/result.ts";
import { closeQuietly } from "../../shared/wire/frame.ts";
import { listenRaw } from "../../shared/wire/listen.ts";

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

/** Serves `handle` on `s.sock` in a new folder, `most` connections at once. Throws when it cannot be made. */
export function openCallSocket(
  folder: string,
  most: number,
  handle: Deno.ServeHandler<Deno.UnixAddr>,
  log: (line: string) => void,
): CallSocket {
  Deno.mkdirSync(folder, { mode: 0o711 });
  const path = `${folder}/s.sock`;
  // Beside the folder, where no program can dial.
  const inner = `${folder}.sock`;
  const stop = new AbortController();
  try {
    Deno.chmodSync(folder, 0o711);
    const server = Deno.serve({
      transport: "unix",
      path: inner,
      signal: stop.signal,
      onListen: () => {},
      onError(thrown) {
        log(`a request failed: ${messageOf(thrown)}`);
        return new Response("egressd: failed\n", { status: 502 });
      },
    }, handle);
    const served = server.finished.catch((thrown) => log(`a call ends: ${messageOf(thrown)}`));
    const listener = listenRaw(path);
    Deno.chmodSync(path, 0o666);
    const door = keepDoor(listener, inner, most, stop.signal);
    return {
      async close() {
        stop.abort();
        listener.close();
        await Promise.all([served, door]);
        removeFolder(folder);
        removeFolder(inner);
      },
    };
  } catch (thrown) {
    stop.abort();
    removeFolder(folder);
    throw thrown;
  }
}

/** Lets connections in to the server inside, until the signal aborts; it never rejects. */
async function keepDoor(
  listener: Deno.UnixListener,
  inner: string,
  most: number,
  signal: AbortSignal,
): Promise<void> {
  let open = 0;
  let wake = () => {};
  // A race between those that are open would keep something of each that ended, for as long as one stays.
  const oneLess = () => new Promise<void>((resolve) => wake = resolve);
  while (!signal.aborted) {
    if (open >= most) {
      await oneLess();
      continue;
    }
    try {
      const program = await listener.accept();
      open++;
      pass(program, inner, signal).then(() => {
        open--;
        wake();
      });
    } catch {
      // Closed, which ends the loop, or out of descriptors, which passes.
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
  while (open > 0) await oneLess();
}

/** Passes bytes both ways until the server's side ends. */
async function pass(program: Deno.UnixConn, inner: string, signal: AbortSignal): Promise<void> {
  const server = await Deno.connect({ transport: "unix", path: inner }).catch(() => null);
  const end = () => {
    closeQuietly(program);
    if (server !== null) closeQuietly(server);
  };
  signal.addEventListener("abort", end);
  if (server !== null && !signal.aborted) {
    const up = carry(program, server);
    await carry(server, program);
    end();
    await up;
  }
  end();
  signal.removeEventListener("abort", end);
}

async function carry(from: Deno.UnixConn, to: Deno.UnixConn): Promise<void> {
  const block = new Uint8Array(65_536);
  try {
    for (let read = await from.read(block); read !== null; read = await from.read(block)) {
      for (let sent = 0; sent < read;) sent += await to.write(block.subarray(sent, read));
    }
    await to.closeWrite();
  } catch {
    // A broken side ends the other as well.
    closeQuietly(from);
    closeQuietly(to);
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
