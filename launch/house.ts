// One whole house for a rehearsal or a test: a home with its configuration and grants, every daemon
// under its real flags, a model server beside them, and bxctl as a person would call it.
import { prepareHome } from "./home.ts";
import { DAEMONS, type Program, roleProgram, supervise, type Supervisor } from "./supervisor.ts";
import type { Role } from "../shared/wire/sockets.ts";

export interface HouseOptions {
  /** Absolute; made when absent. At most 75 bytes. */
  readonly home: string;
  readonly source: string;
  /** TOML text per role, written to the home's configuration. */
  readonly configs: Partial<Record<Role, string>>;
  /** TOML text per file name, written to the home's grants. */
  readonly grants: Readonly<Record<string, string>>;
  /** A program to run beside the roles, such as a model server. */
  readonly model: Program | null;
  readonly roles?: readonly Role[];
  readonly say: (line: string) => void;
  /** Resolves when the start is to be given up. */
  readonly stopped?: Promise<void>;
}

export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export interface House {
  readonly home: string;
  readonly supervisor: Supervisor;
  /** Runs one bxctl command to its end. */
  bx(args: readonly string[], input?: string): Promise<Ran>;
  stop(): Promise<void>;
}

const READY_MS = 60_000;

/** Writes the home and starts every daemon. Throws when they are not all ready in a minute. */
export async function startHouse(options: HouseOptions): Promise<House> {
  const { home, source } = options;
  writeHome(options);
  const roles = options.roles ?? DAEMONS;
  const programs = [
    ...(options.model === null ? [] : [options.model]),
    ...roles.map((role) => roleProgram(role, home, source)),
  ];
  const supervisor = supervise({ home, programs, say: options.say });
  const never = new Promise<void>(() => {});
  const given = (options.stopped ?? never).then(() => false);
  if (!await Promise.race([supervisor.ready(READY_MS), given])) {
    await supervisor.stop();
    throw new Error(`The roles did not become ready; look in ${home}/logs`);
  }
  return {
    home,
    supervisor,
    bx: (args, input) => runBxctl(home, source, args, input),
    stop: () => supervisor.stop(),
  };
}

function writeHome(options: HouseOptions): void {
  const { home } = options;
  Deno.mkdirSync(home, { recursive: true, mode: 0o700 });
  Deno.chmodSync(home, 0o700);
  const prepared = prepareHome(home);
  if (!prepared.ok) throw new Error(`${prepared.code}: ${prepared.detail}`);
  for (const [role, text] of Object.entries(options.configs)) {
    writeOwn(`${home}/config/${role}.toml`, text);
  }
  for (const [name, text] of Object.entries(options.grants)) {
    writeOwn(`${home}/grants/${name}`, text);
  }
}

/** Writes a file of mode 0600. */
export function writeOwn(path: string, text: string): void {
  Deno.writeTextFileSync(path, text, { mode: 0o600 });
}

/** The command that is `bxctl ARGS` for a home. */
export function bxctlCommand(home: string, source: string, args: readonly string[]) {
  const program = roleProgram("bxctl", home, source);
  const [file, ...words] = program.argv;
  return {
    file: file ?? "/bin/sh",
    options: {
      args: [...words, ...args],
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", ...program.env },
    },
  };
}

async function runBxctl(
  home: string,
  source: string,
  args: readonly string[],
  input = "",
): Promise<Ran> {
  const { file, options } = bxctlCommand(home, source, args);
  const child = new Deno.Command(file, {
    ...options,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  // A command that reads no input may be gone before it is written.
  await writer.write(new TextEncoder().encode(input)).catch(() => {});
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { status: code, out: text(stdout), err: text(stderr) };
}
