// Every command of bxctl by name.
import { APPROVALS, APPROVE, DENY, RESUME_COMMAND, STOP_COMMAND } from "./approvals.ts";
import { AUDIT } from "./audit.ts";
import { CACHE } from "./cache.ts";
import { CHAT } from "./chat.ts";
import type { Command, Context } from "./context.ts";
import { EXIT_USAGE, fail, misused, print } from "./context.ts";
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
function overview(context: Context): number {
  const commands = Object.entries(COMMANDS)
    .map(([name, command]) => ({ name, usage: usageOf(command), summary: command.summary }));
  const rows = commands.map(({ name, summary }) => [`  ${name}`, summary]);
  const text = `usage: bxctl COMMAND [WORDS] [--json]\n\n${table(rows)}\n` +
    "bxctl COMMAND --help prints its words\n";
  return print(context, { commands }, text);
}

function usageOf({ forms }: Command): string {
  return `${Object.values(forms).map((form) => form.usage).join(" | ")}  [--json]`;
}

/** Runs the command line `args` and returns the exit status. */
export async function runCommand(context: Context, args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help") {
    const status = overview(context);
    return name === undefined ? EXIT_USAGE : status;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return fail(context, err("usage", `No command ${name}`));
  const usage = usageOf(command);
  if (rest.includes("--help")) {
    const { summary } = command;
    return print(context, { name, usage, summary }, `usage: bxctl ${usage}\n  ${summary}\n`);
  }
  const { forms } = command;
  const [verb = "", ...words] = rest;
  const named = verb !== "" && Object.hasOwn(forms, verb) ? forms[verb] : undefined;
  if (named !== undefined) return await named.run(context, words);
  return await forms[""]?.run(context, rest) ?? misused(context, usage);
}
