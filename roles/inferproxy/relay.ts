// Carries the bytes of one connection both ways, unbuffered, adding and removing nothing.
//
// 1. Each way reads one block and writes it whole before it reads the next: back-pressure.
// 2. The end of one way is passed on as a half-close; the other way goes on.
// 3. When the client is gone altogether, the upstream is closed at once, so the model server sees
//    it and frees the slot. A failure of either side closes both: no clean end is invented.

/** A connection that can end its writing side alone; the shape of `Deno.UnixConn` and `TcpConn`. */
export interface DuplexConn {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  closeWrite(): Promise<void>;
  close(): void;
}

const BLOCK_BYTES = 65_536;

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
  };
  const back = async () => {
    if (!await carry(upstream, client)) return closeBoth();
    await client.closeWrite();
  };
  const settle = (way: Promise<void>) => way.catch(closeBoth);
  await Promise.all([settle(towards()), settle(back())]);
  closeBoth();
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
async function isGone(conn: DuplexConn): Promise<boolean> {
  try {
    await conn.write(new Uint8Array(0));
    return false;
  } catch {
    // The failure is the answer.
    return true;
  }
}

function closeQuietly(conn: DuplexConn): void {
  try {
    conn.close();
  } catch {
    // Already closed by the other way.
  }
}
