// Every command of bxctl by name.
import { APPROVALS, APPROVE, DENY, RESUME_COMMAND, STOP_COMMAND } from "./approvals.ts";
import { AUDIT } from "./audit.ts";
import { CACHE } from "./cache.ts";
import { CHAT } from "./chat.ts";
import type { Command, Context } from "./context.ts";
import { EXIT_USAGE, fail } from "./context.ts";
import { DOCTOR } from "./doctor.ts";
import { EGRESS } from "./egress.ts";
import { GRANTS } from "./grants.ts";
import { RECALL, REINDEX_COMMAND } from "./memory.ts";
import { MEMORY } from "./memory_files.ts";
import { PROMPT } from "./prompt.ts";
import { SECRETS } from "./secrets.ts";
import { SESSIONS } from "./sessions.ts";
import { STATUS, VERSION_COMMAND } from "./status.ts";
import { err } from "../../shared/results/result.ts";
import { table } from "./terminal.ts";

export const COMMANDS: Readonly<Record<string, Command>> = {
  chat: CHAT,
  status: STATUS,
  doctor: DOCTOR,
  approvals: APPROVALS,
  approve: APPROVE,
  deny: DENY,
  stop: STOP_COMMAND,
  resume: RESUME_COMMAND,
  audit: AUDIT,
  grants: GRANTS,
  egress: EGRESS,
  recall: RECALL,
  reindex: REINDEX_COMMAND,
  memory: MEMORY,
  secrets: SECRETS,
  sessions: SESSIONS,
  prompt: PROMPT,
  cache: CACHE,
  version: VERSION_COMMAND,
};

/** What `bxctl` alone prints. */
export function overview(): string {
  const rows = Object.entries(COMMANDS).map(([name, command]) => [`  ${name}`, command.summary]);
  return `usage: bxctl COMMAND [WORDS] [--json]\n\n${
    table(rows)
  }\nbxctl COMMAND --help prints its words\n`;
}

/** Runs the command line `args` and returns the exit status. */
export async function runCommand(context: Context, args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help") {
    context.terminal.out(overview());
    return name === undefined ? EXIT_USAGE : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return fail(context, err("usage", `No command ${name}`));
  if (rest.includes("--help")) {
    context.terminal.out(`usage: bxctl ${command.usage}\n  ${command.summary}\n`);
    return 0;
  }
  return await command.run(context, rest);
}
