// The accepting loop: one Unix socket in, one fixed upstream out, a bounded number at once.
// At the limit it stops accepting, so callers wait in the kernel's queue and nothing is refused.
import { closeQuietly, type DuplexConn, isGone, LOOK_MS, relay, within } from "./relay.ts";

export interface Acceptor {
  accept(): Promise<DuplexConn>;
}

/**
 * Forwards each accepted connection to a fresh one from `dial`, until the acceptor has been closed and
 * every connection has ended. When the upstream cannot be reached the client's connection is closed
 * without a byte.
 */
export async function forward(
  acceptor: Acceptor,
  dial: () => Promise<DuplexConn>,
  maxConnections: number,
  isStopping: () => boolean,
): Promise<void> {
  const open = new Set<Promise<void>>();
  while (!isStopping()) {
    if (open.size >= maxConnections) {
      await Promise.race(open);
      continue;
    }
    let client: DuplexConn;
    try {
      client = await acceptor.accept();
    } catch {
      if (isStopping()) break;
      // Out of descriptors: pause, the peer waits in the kernel's queue.
      await new Promise((resolve) => setTimeout(resolve, 200));
      continue;
    }
    const one = carryOne(client, dial).finally(() => open.delete(one));
    open.add(one);
  }
  await Promise.all(open);
}

async function carryOne(client: DuplexConn, dial: () => Promise<DuplexConn>): Promise<void> {
  const dialing = dial();
  try {
    while (!await within(dialing, LOOK_MS)) {
      if (!await isGone(client)) continue;
      client.close();
      dialing.then(closeQuietly, () => {});
      return;
    }
  } catch {
    // The server is down: the caller sees the end of its connection and says so to the owner.
    client.close();
    return;
  }
  await relay(client, await dialing);
}
