// `approvals`, `approve`, `deny`, `stop`, `resume`: the owner's word to brokerd.
import { ApprovalId } from "../../shared/ids/ids.ts";
import {
  APPROVAL_ANSWER,
  APPROVAL_SHOW,
  APPROVALS_LIST,
  RESUME,
  STOP,
} from "../../shared/wire/broker_owner.ts";
import type { AnswerOutcome, ApprovalSummary } from "../../shared/wire/parts.ts";
import {
  ask,
  askAndPrint,
  askText,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  misused,
  parseWords,
  print,
} from "./context.ts";
import { shownLines, span, table } from "./terminal.ts";

const SOCKET = "owner-broker/admin";

/** What each outcome means to the one who answered. */
export const OUTCOMES: Record<AnswerOutcome, string> = {
  approved: "Approved",
  denied: "Denied",
  unknown: "No open question has this code",
  expired: "This question has expired and was denied",
  already_answered: "This question was answered before",
  wrong_thread: "This question belongs to another thread",
  local_only: "This question can be answered with bxctl only",
};

function listRow(context: Context, one: ApprovalSummary): string[] {
  const left = one.expires_unix_ms - context.clock.nowUnixMs();
  const state = one.state === "pending" ? `${span(Math.max(0, left))} left` : one.state;
  return [one.approval, one.tool, state, one.session];
}

export const APPROVALS: Command = {
  usage: "approvals [--all] | approvals show ID  [--json]",
  summary: "questions waiting for your answer; show prints one in full, with its code",
  async run(context, args) {
    const words = parseWords(args, { all: { type: "boolean" } }, this.usage, 2);
    if (!words.ok) return fail(context, words);
    const [verb, id] = words.value.positionals;
    if (verb === "show") return await show(context, id);
    if (verb !== undefined) return misused(context, this.usage);
    const include_answered = words.value.values.all === true;
    const reply = await ask(context, SOCKET, APPROVALS_LIST, { include_answered, limit: 200 });
    if (!reply.ok) return fail(context, reply);
    const { items } = reply.value.body;
    const rows = items.map((one) => listRow(context, one));
    const text = rows.length === 0 ? "Nothing waits for your answer\n" : table(rows);
    return print(context, { approvals: items }, text);
  },
};

async function show(context: Context, id: string | undefined): Promise<number> {
  const approval = ApprovalId.safeParse(id);
  if (!approval.success) return misused(context, "approvals show ID");
  const shown = await askText(context, SOCKET, APPROVAL_SHOW, { approval: approval.data });
  if (!shown.ok) return fail(context, shown);
  const { text, reply: { body: { summary, code } } } = shown.value;
  return print(context, { ...summary, code, text }, `${shownLines(text)}\n`);
}

function answering(answer: "approve" | "deny", summary: string): Command {
  return {
    usage: `${answer} CODE [--json]`,
    summary,
    async run(context, args) {
      const words = parseWords(args, {}, this.usage, 1);
      if (!words.ok) return fail(context, words);
      const code = words.value.positionals[0]?.slice(0, 64);
      if (code === undefined) return misused(context, this.usage);
      const reply = await ask(context, SOCKET, APPROVAL_ANSWER, { code, answer });
      if (!reply.ok) return fail(context, reply);
      const { outcome, tool } = reply.value.body;
      const what = tool === null ? "" : ` (${tool})`;
      print(context, reply.value.body, `${OUTCOMES[outcome]}${what}\n`);
      const wanted = answer === "approve" ? "approved" : "denied";
      return outcome === wanted ? EXIT_OK : EXIT_FAILED;
    },
  };
}

export const APPROVE = answering("approve", "allow the call that asks with this code");
export const DENY = answering("deny", "refuse the call that asks with this code");

export const STOP_COMMAND: Command = {
  usage: "stop [WHY] [--json]",
  summary: "refuse every new effect and end what runs, until resume",
  async run(context, args) {
    const words = parseWords(args, {}, this.usage, Infinity);
    if (!words.ok) return fail(context, words);
    const why = words.value.positionals.join(" ").slice(0, 500) || "no reason given";
    return await askAndPrint(
      context,
      SOCKET,
      STOP,
      { why },
      ({ was_stopped, ended }) =>
        was_stopped
          ? "It was stopped already\n"
          : `Stopped; ${ended} running ended. Go on with bxctl resume\n`,
    );
  },
};

export const RESUME_COMMAND: Command = {
  usage: "resume [--json]",
  summary: "allow effects again after stop",
  async run(context, args) {
    const words = parseWords(args, {}, this.usage);
    if (!words.ok) return fail(context, words);
    const text = ({ was_stopped }: { was_stopped: boolean }) =>
      was_stopped ? "Resumed\n" : "It was not stopped\n";
    return await askAndPrint(context, SOCKET, RESUME, {}, text);
  },
};
