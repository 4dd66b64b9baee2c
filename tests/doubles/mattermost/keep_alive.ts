// The server's own liveness: a protocol Ping each minute, and a read deadline that only Pongs extend.
// Neither data nor a client's own Pings count.
import { cancel, type Connection, later } from "./connections.ts";
import type { World } from "./world.ts";

const PING_MS = 60_000;
const READ_DEADLINE_MS = 100_000;

/** Starts both; the returned function is told of each Pong. They end with the connection's timers. */
export function keepAlive(world: World, connection: Connection, onSilent: () => void): () => void {
  const { line } = connection;
  const deadline = () => later(connection, world.scaled(READ_DEADLINE_MS), onSilent);
  let timer = deadline();
  const ping = () => {
    later(connection, world.scaled(PING_MS), () => {
      line?.sendPing();
      ping();
    });
  };
  ping();
  return () => {
    cancel(connection, timer);
    timer = deadline();
  };
}
