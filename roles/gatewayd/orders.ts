// What the owner orders with `!`: carried out by the role it concerns, answered in its thread.
import { assertNever, type Result } from "../../shared/results/result.ts";
import { OUTCOME_TEXT } from "../../shared/wire/parts.ts";
import { type Command, commandOf, HELP } from "./commands.ts";
import { defused } from "./outgoing_text.ts";
import type { Parts } from "./parts.ts";
import type { Questions } from "./questions.ts";
import type { Inbound } from "./store.ts";
import type { Turns } from "./turns.ts";

const TRIES = 5;

type OrdersOptions = Pick<Parts, "store" | "sender" | "peers" | "clock" | "timers" | "signal"> & {
  readonly turns: Turns;
  readonly questions: Questions;
  /** How the channel is, in a line. */
  readonly summary: () => string;
};

/** Carries out every order in the queue; returned function is called when there may be new ones. */
export function makeOrders(options: OrdersOptions): () => void {
  const { store, sender } = options;
  const under = new Set<string>();
  return () => {
    for (const row of store.commands()) {
      if (under.has(row.post)) continue;
      under.add(row.post);
      carryOut(options, row).then((text) => {
        if (options.signal.aborted) return;
        store.step(() => {
          store.setInbox(row.post, "done");
          const isNew = commandOf(row.text)?.is === "new";
          const root = isNew ? "" : row.root;
          if (text !== "") store.put({ key: `a${row.post}`, channel: row.channel, root, text });
        });
        under.delete(row.post);
        sender.wakeAll();
      });
    }
  };
}

/** The words to answer with; nothing when the answer comes by another way. */
async function carryOut(options: OrdersOptions, row: Inbound): Promise<string> {
  const command = commandOf(row.text) ?? { is: "unknown" as const, word: "" };
  switch (command.is) {
    case "approve":
    case "deny":
      return await answer(options, row, command);
    case "cancel":
      if (options.turns.cancel(row.session, row.at)) return "";
      return "Nothing is under way in this thread.";
    case "stop":
      return await stop(options);
    case "status":
      return await status(options);
    case "new":
      return "A new conversation: answer in this thread.";
    case "jobs":
      return "There are no jobs: this version schedules nothing.";
    case "runs":
      return "There are no runs: this version works on your messages alone. Write !status for those.";
    case "help":
      return HELP;
    case "unknown":
      return new RegExp(`!${command.word}\\b`).test(HELP)
        ? `!${command.word} is written otherwise. Write !help for how.`
        : `I do not know !${command.word}. Write !help for the words I know.`;
    default:
      return assertNever(command);
  }
}

async function answer(
  options: OrdersOptions,
  row: Inbound,
  command: Extract<Command, { is: "approve" | "deny" }>,
): Promise<string> {
  if (row.edit_at !== 0) return "A message that was edited answers no question. Write it anew.";
  const { peers, questions } = options;
  const where = questions.threadOf(row.root, row.session);
  const asked = { code: command.code, answer: command.is, ...where };
  const reply = await again(options, () => peers.answer(asked));
  if (!reply.ok) {
    return `brokerd does not answer (${reply.code}), so nothing was answered. Try again.`;
  }
  const { outcome, approval } = reply.value.body;
  if ((outcome !== "approved" && outcome !== "denied") || approval === null) {
    return `${OUTCOME_TEXT[outcome]}.`;
  }
  // brokerd says so too; whichever comes first is posted.
  questions.closed(approval, outcome);
  return "";
}

async function stop(options: OrdersOptions): Promise<string> {
  const reply = await again(options, () => options.peers.stop("the owner wrote !stop"));
  return reply.ok
    ? "Stopped: every effect is refused until bxctl resume."
    : `brokerd does not answer (${reply.code}), so I could not stop it. Use bxctl stop.`;
}

async function status({ peers, summary }: OrdersOptions): Promise<string> {
  const loop = await peers.status();
  const { summary: how, problems } = loop.ok
    ? loop.value.body
    : { summary: `does not answer (${loop.code})`, problems: [] };
  const lines = [how, ...problems.map((one) => `${one.code}: ${one.detail}`)];
  return [`Channel: ${summary()}`, ...lines.map((line) => `loopd: ${line}`)]
    .map(defused).join("\n");
}

/** Asks a few times, as a role that was killed is back in a moment. */
async function again<T>(
  { clock, timers, signal }: OrdersOptions,
  ask: () => Promise<Result<T>>,
): Promise<Result<T>> {
  let reply = await ask();
  for (let i = 1; i < TRIES && !reply.ok && !signal.aborted; i++) {
    await clock.sleep(timers.retryPeerMs, signal);
    reply = await ask();
  }
  return reply;
}
