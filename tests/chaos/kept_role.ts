// A role as its own process under its real flags, started again whenever it was killed, with its log in
// a file. One that ends by itself is a problem.
import { HOME_FOLDERS } from "../../shared/permissions/places.ts";
import { startRole } from "../doubles/role_process.ts";
import { calledBy, servedBy } from "../../shared/wire/sockets.ts";

type Role = "gatewayd" | "loopd";

export interface Kept {
  pid(): number;
  readonly problems: string[];
  kill(): void;
  stop(): Promise<void>;
}

/** The folders of a home in which only these two roles run. */
export async function prepareHome(home: string): Promise<void> {
  for (const name of HOME_FOLDERS) await Deno.mkdir(`${home}/${name}`, { recursive: true });
  for (const role of ["gatewayd", "loopd"] as const) {
    for (const socket of [...servedBy(role), ...calledBy(role)]) {
      await Deno.mkdir(`${home}/run/${socket.split("/")[0]}`, { recursive: true });
    }
  }
}

/** `v8` is what the engine is told beside what it always is, for example the size of its heap. */
export function keepRunning(role: Role, home: string, flags: readonly string[], v8 = ""): Kept {
  const problems: string[] = [];
  let isStopping = false;
  let child = startRole(role, home, flags, v8);
  const kill = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // Already gone; its status says how.
    }
  };
  const running = (async () => {
    while (!isStopping) {
      const { signal, code } = await child.status;
      if (isStopping) return;
      if (signal !== "SIGKILL") problems.push(`${role} ended by itself with ${code}`);
      if (problems.length > 3) return;
      child = startRole(role, home, flags, v8);
    }
  })();
  return {
    pid: () => child.pid,
    problems,
    kill,
    async stop() {
      isStopping = true;
      kill();
      await child.status;
      await running;
    },
  };
}
