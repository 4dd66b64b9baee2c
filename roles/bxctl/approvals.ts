// `approvals`, `approve`, `deny`, `stop`, `resume`: the owner's word to brokerd.
import { ApprovalId } from "../../shared/ids/ids.ts";
import {
  APPROVAL_ANSWER,
  APPROVAL_SHOW,
  APPROVALS_LIST,
  RESUME,
  STOP,
} from "../../shared/wire/broker_owner.ts";
import { type ApprovalSummary, OUTCOME_TEXT } from "../../shared/wire/parts.ts";
import {
  ask,
  askAndPrint,
  askText,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  FLAG,
  form,
  misused,
  print,
  type Run,
} from "./context.ts";
import { shownLines, span, table } from "./terminal.ts";

const SOCKET = "owner-broker/admin";

function listRow(context: Context, one: ApprovalSummary): string[] {
  const left = one.expires_unix_ms - context.clock.nowUnixMs();
  const state = one.state === "pending" ? `${span(Math.max(0, left))} left` : one.state;
  return [one.approval, one.tool, state, one.session];
}

const list = form("approvals [--all]", [0, 0], { all: FLAG }, async (context, { values }) => {
  const asked = { include_answered: values.all === true, limit: 200 };
  const reply = await ask(context, SOCKET, APPROVALS_LIST, asked);
  if (!reply.ok) return fail(context, reply);
  const { items } = reply.value.body;
  const rows = items.map((one) => listRow(context, one));
  const text = rows.length === 0 ? "Nothing waits for your answer\n" : table(rows);
  return print(context, { approvals: items }, text);
});

const show = form("approvals show ID", [1, 1], {}, async (context, { positionals }, usage) => {
  const approval = ApprovalId.safeParse(positionals[0]);
  if (!approval.success) return misused(context, usage);
  const shown = await askText(context, SOCKET, APPROVAL_SHOW, { approval: approval.data });
  if (!shown.ok) return fail(context, shown);
  const { text, reply: { body: { summary, code } } } = shown.value;
  return print(context, { ...summary, code, text }, `${shownLines(text)}\n`);
});

export const APPROVALS: Command = {
  summary: "questions waiting for your answer; show prints one in full, with its code",
  forms: { "": list, show },
};

function answering(answer: "approve" | "deny", summary: string): Command {
  const run: Run = async (context, { positionals: [code = ""] }) => {
    const asked = { code: code.slice(0, 64), answer };
    const reply = await ask(context, SOCKET, APPROVAL_ANSWER, asked);
    if (!reply.ok) return fail(context, reply);
    const { outcome, tool } = reply.value.body;
    const what = tool === null ? "" : ` (${tool})`;
    print(context, reply.value.body, `${OUTCOME_TEXT[outcome]}${what}\n`);
    const wanted = answer === "approve" ? "approved" : "denied";
    return outcome === wanted ? EXIT_OK : EXIT_FAILED;
  };
  return { summary, forms: { "": form(`${answer} CODE`, [1, 1], {}, run) } };
}

export const APPROVE = answering("approve", "allow the call that asks with this code");
export const DENY = answering("deny", "refuse the call that asks with this code");

const stop: Run = (context, { positionals }) => {
  const why = positionals.join(" ").slice(0, 500) || "no reason given";
  return askAndPrint(
    context,
    SOCKET,
    STOP,
    { why },
    ({ was_stopped, ended }) =>
      was_stopped
        ? "It was stopped already\n"
        : `Stopped; ${ended} running ended. Go on with bxctl resume\n`,
  );
};

export const STOP_COMMAND: Command = {
  summary: "refuse every new effect and end what runs, until resume",
  forms: { "": form("stop [WHY]", [0, Infinity], {}, stop) },
};

const resume: Run = (context) =>
  askAndPrint(
    context,
    SOCKET,
    RESUME,
    {},
    ({ was_stopped }) => was_stopped ? "Resumed\n" : "It was not stopped\n",
  );

export const RESUME_COMMAND: Command = {
  summary: "allow effects again after stop",
  forms: { "": form("resume", [0, 0], {}, resume) },
};
