// Carries the bytes of one connection both ways, unbuffered, adding and removing nothing.
//
// 1. Each way reads one block and writes it whole before it reads the next: back-pressure.
// 2. The end of one way is passed on as a half-close; the other way goes on.
// 3. When the client is gone altogether, the upstream is closed at once, so the model server sees
//    it and frees the slot; within a fifth of a second when it had finished sending before. A failure of either side closes both: no clean end is invented.

/** A connection that can end its writing side alone; the shape of `Deno.UnixConn` and `TcpConn`. */
export interface DuplexConn {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  closeWrite(): Promise<void>;
  close(): void;
}

const BLOCK_BYTES = 65_536;
/** How often a client that nothing is read from is looked at. */
export const LOOK_MS = 200;

/** Relays until both ways have ended; both connections are closed when it resolves. Never rejects. */
export async function relay(client: DuplexConn, upstream: DuplexConn): Promise<void> {
  const closeBoth = () => {
    closeQuietly(client);
    closeQuietly(upstream);
  };
  const towards = async () => {
    if (!await carry(client, upstream)) return closeBoth();
    if (await isGone(client)) return closeBoth();
    await upstream.closeWrite();
    // Nothing more is read from the client, so that it leaves has to be looked for.
    while (!await within(answered, LOOK_MS)) if (await isGone(client)) return closeBoth();
  };
  const back = async () => {
    if (!await carry(upstream, client)) return closeBoth();
    await client.closeWrite();
  };
  const settle = (way: Promise<void>) => way.catch(closeBoth);
  const answered = settle(back());
  await Promise.all([settle(towards()), answered]);
  closeBoth();
}

/** Whether a promise is fulfilled in time; rejects with it. Its timer does not outlive it. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), ms));
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Copies one way; true when it ended by the sender's half-close, false when it broke. */
async function carry(from: DuplexConn, to: DuplexConn): Promise<boolean> {
  const block = new Uint8Array(BLOCK_BYTES);
  try {
    for (;;) {
      const read = await from.read(block);
      if (read === null) return true;
      let sent = 0;
      while (sent < read) sent += await to.write(block.subarray(sent, read));
    }
  } catch {
    // Reset, broken pipe and closed under us all mean that this way is over and not cleanly.
    return false;
  }
}

/**
 * Tells a peer that has closed from one that only finished sending: a write of no bytes fails on a
 * Unix socket whose other end is closed, and does nothing to one that is half closed.
 */
export async function isGone(conn: DuplexConn): Promise<boolean> {
  try {
    await conn.write(new Uint8Array(0));
    return false;
  } catch {
    // The failure is the answer.
    return true;
  }
}

export function closeQuietly(conn: DuplexConn): void {
  try {
    conn.close();
  } catch {
    // Already closed by the other way.
  }
}
