// A terminal that remembers, and a home whose owner sockets are answered by a test's own routes:
// bxctl is run in-process against the real wire, with the roles played by the test.
import { runCommand } from "../../../roles/bxctl/commands.ts";
import type { Terminal } from "../../../roles/bxctl/terminal.ts";
import { systemClock } from "../../../shared/clock/clock.ts";
import { systemRandom } from "../../../shared/clock/random.ts";
import { listen, type Listening, type Route } from "../../../shared/wire/listen.ts";
import { type SocketName, socketPath } from "../../../shared/wire/sockets.ts";

export interface FakeTerminal extends Terminal {
  readonly printed: { out: string; err: string };
  type(line: string | null): void;
}

export function fakeTerminal(isInteractive: boolean, hasColor = false): FakeTerminal {
  const printed = { out: "", err: "" };
  const lines: (string | null)[] = [];
  let wake = () => {};
  const readLine = async () => {
    for (;;) {
      const line = lines.shift();
      if (line !== undefined) return line;
      await new Promise<void>((resolve) => wake = resolve);
    }
  };
  return {
    printed,
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
    readLine,
    readHidden: (prompt) => {
      if (isInteractive) printed.err += prompt;
      return readLine();
    },
    type(line) {
      lines.push(line);
      wake();
    },
    isInteractive,
    hasColor,
    columns: 80,
  };
}

export interface OwnerRig extends AsyncDisposable {
  readonly home: string;
  /** Answers one more socket, or the same one anew. */
  serve(socket: SocketName, routes: readonly Route[]): Promise<void>;
  stopServing(socket: SocketName): Promise<void>;
  run(args: readonly string[], terminal?: FakeTerminal): Promise<{
    status: number;
    out: string;
    err: string;
  }>;
}

export async function ownerRig(): Promise<OwnerRig> {
  const home = await Deno.makeTempDir({ prefix: "bx" });
  const servers = new Map<string, Listening>();
  const stopServing = async (socket: SocketName) => {
    await servers.get(socket)?.close();
    servers.delete(socket);
  };
  return {
    home,
    async serve(socket, routes) {
      await stopServing(socket);
      const path = socketPath(home, socket);
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      servers.set(socket, listen({ path, routes, log: () => {} }));
    },
    stopServing,
    async run(args, terminal = fakeTerminal(false)) {
      const words = args.filter((word) => word !== "--json");
      const wantsJson = words.length < args.length;
      const context = { terminal, home, clock: systemClock, random: systemRandom, wantsJson };
      const status = await runCommand(context, words);
      return { status, ...terminal.printed };
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers.values()) await server.close();
      await Deno.remove(home, { recursive: true });
    },
  };
}
