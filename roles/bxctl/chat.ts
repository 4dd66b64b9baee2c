// `chat`: a conversation in the terminal, or one message with -m. What loopd tells streams in, and
// questions to the owner are shown in full and can be answered in place.
//
// 1. The model's text is escaped before it reaches the terminal.
// 2. A reply is acknowledged only after it has been printed.
// 3. Leaving loses nothing: the turn goes on, and its reply waits in the outbox.
import { MessageId, SessionId, type TurnId, ulid } from "../../shared/ids/ids.ts";
import { assertNever, type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { APPROVAL_ANSWER, APPROVAL_SHOW, STOP } from "../../shared/wire/broker_owner.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import {
  OUTBOX_ACK,
  OUTBOX_FETCH,
  type OutboxItem,
  TURN_CANCEL,
  TURN_SUBMIT,
  type TurnState,
} from "../../shared/wire/loop.ts";
import { OUTCOME_TEXT } from "../../shared/wire/parts.ts";
import { type ChatScreen, chatScreen } from "./chat_screen.ts";
import {
  ask,
  askText,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  form,
  misused,
  printJson,
  WORD,
} from "./context.ts";
import { type LoopEvent, watchLoop } from "./loop_events.ts";

type Item = BodyOf<typeof OutboxItem>;

interface Chat {
  readonly context: Context;
  readonly screen: ChatScreen;
  readonly isOnce: boolean;
  session: SessionId;
  /** Turns whose last word has not come yet. */
  readonly open: Set<TurnId>;
  /** The question on the screen, until it is answered or its turn goes on. */
  question: { readonly approval: string; readonly code: string } | null;
  outcome: number;
}

const HELP = "/new begins a new session, /cancel ends the turn, /stop refuses every effect, " +
  "/quit leaves; approve or deny answers a question";

const USAGE = "chat [--session ID] [-m TEXT]";
const OPTIONS = { session: WORD, message: { type: "string", short: "m" } } as const;
const talk = form(USAGE, [0, 0], OPTIONS, async (context, { values }) => {
  const { session = freshSession(context), message } = values;
  const id = SessionId.safeParse(session);
  if (message === "" || !id.success) return misused(context, USAGE);
  if (context.wantsJson && message === undefined) {
    return fail(context, err("usage", "--json goes with -m"));
  }
  const isStreaming = context.terminal.isInteractive && !context.wantsJson;
  const chat: Chat = {
    context,
    screen: chatScreen(context.terminal, isStreaming ? "streaming" : "whole"),
    isOnce: message !== undefined,
    session: id.data,
    open: new Set(),
    question: null,
    outcome: EXIT_OK,
  };
  return await converse(chat, message ?? null);
});

export const CHAT: Command = {
  summary: "talk with the assistant; -m sends one message and prints the answer",
  forms: { "": talk },
};

function freshSession(context: Context): string {
  return `chat-${ulid(context.clock.nowUnixMs(), context.random)}`;
}

async function converse(chat: Chat, once: string | null): Promise<number> {
  const { context, screen } = chat;
  const events = watchLoop(context, () => screen.say("loopd is away; waiting for it"));
  try {
    if (once !== null) {
      const sent = await submit(chat, once);
      if (!sent.ok) return fail(context, sent);
    } else screen.say(`session ${chat.session}; /help lists what else can be typed`);
    let isInputOver = once !== null;
    let line: Promise<string | null> | null = null;
    let event: Promise<Result<LoopEvent>> | null = null;
    if (!isInputOver) screen.prompt();
    while (!isInputOver || chat.open.size > 0) {
      // A chat with -m still reads answers to questions, when a person is there to give them.
      const mayRead = !isInputOver || (context.terminal.isInteractive && chat.question !== null);
      if (mayRead) line ??= context.terminal.readLine();
      event ??= events.next();
      const first = await Promise.race([
        event.then((value) => ({ event: value })),
        ...(line === null ? [] : [line.then((value) => ({ line: value }))]),
      ]);
      if ("event" in first) {
        event = null;
        const handled = first.event.ok ? await onEvent(chat, first.event.value) : first.event;
        if (!handled.ok) return fail(context, handled);
      } else {
        line = null;
        if (first.line === null || first.line.trim() === "/quit") isInputOver = true;
        else await onLine(chat, first.line);
      }
    }
    return chat.outcome;
  } finally {
    events.close();
  }
}

async function onLine(chat: Chat, line: string): Promise<void> {
  const word = line.trim();
  const { screen, context } = chat;
  if (word === "") return screen.prompt();
  if (chat.question !== null && (word === "approve" || word === "deny")) {
    return await answer(chat, word);
  }
  const done = await command(chat, word);
  if (done !== null) {
    if (!done.ok) fail(context, done);
    return screen.prompt();
  }
  const sent = await submit(chat, line);
  if (!sent.ok) {
    fail(context, sent);
    screen.prompt();
  }
}

/** Carries out a line that begins with a slash; null when the line is a message. */
async function command(chat: Chat, word: string): Promise<Result<null> | null> {
  const { context, screen } = chat;
  if (word === "/new") {
    chat.session = SessionId.parse(freshSession(context));
    screen.say(`session ${chat.session}`);
    return ok(null);
  }
  if (word === "/cancel") {
    const reply = await ask(context, "owner-loop/admin", TURN_CANCEL, { session: chat.session });
    return reply.ok ? ok(null) : reply;
  }
  if (word === "/stop") {
    const reply = await ask(context, "owner-broker/admin", STOP, { why: "typed in chat" });
    if (reply.ok) screen.say("stopped; go on with bxctl resume");
    return reply.ok ? ok(null) : reply;
  }
  if (!word.startsWith("/") || word.includes(" ") || word.lastIndexOf("/") > 0) return null;
  screen.say(HELP);
  return ok(null);
}

async function submit(chat: Chat, text: string): Promise<Result<null>> {
  const { context } = chat;
  const id = MessageId.parse(`bx-${ulid(context.clock.nowUnixMs(), context.random)}`);
  const body = { session: chat.session, message_id: id, label: null };
  const reply = await ask(context, "owner-loop/admin", TURN_SUBMIT, body, {
    upload: encodeUtf8(text.toWellFormed()),
  });
  if (!reply.ok) return reply;
  chat.open.add(reply.value.body.turn);
  return ok(null);
}

async function onEvent(chat: Chat, event: LoopEvent): Promise<Result<null>> {
  if (event.body.session !== chat.session) return ok(null);
  switch (event.kind) {
    case "turn_state":
      return await onState(chat, event.body);
    case "turn_delta":
      chat.screen.delta(event.body);
      return ok(null);
    case "outbox_item":
      return await onItem(chat, event.body);
    default:
      return assertNever(event);
  }
}

async function onState(chat: Chat, state: BodyOf<typeof TurnState>): Promise<Result<null>> {
  chat.screen.state(state);
  if (state.state !== "waiting_approval") chat.question = null;
  else if (state.approval !== null && chat.question?.approval !== state.approval) {
    const shown = await askText(chat.context, "owner-broker/admin", APPROVAL_SHOW, {
      approval: state.approval,
    });
    // It may have been answered or have expired in between; the turn then says so itself.
    if (!shown.ok) return ok(null);
    const { code } = shown.value.reply.body;
    chat.question = { approval: state.approval, code };
    chat.screen.block(shown.value.text);
    chat.screen.say(
      chat.context.terminal.isInteractive
        ? "type approve or deny"
        : `answer with: bxctl approve ${code}, or bxctl deny ${code}`,
    );
    if (chat.context.terminal.isInteractive) chat.screen.prompt();
  }
  return ok(null);
}

async function answer(chat: Chat, word: "approve" | "deny"): Promise<void> {
  const code = chat.question?.code ?? "";
  const reply = await ask(chat.context, "owner-broker/admin", APPROVAL_ANSWER, {
    code,
    answer: word,
  });
  if (!reply.ok) return void fail(chat.context, reply);
  chat.question = null;
  chat.screen.say(OUTCOME_TEXT[reply.value.body.outcome]);
}

async function onItem(chat: Chat, item: Item): Promise<Result<null>> {
  const isOurs = item.turn !== null && chat.open.has(item.turn);
  if (chat.isOnce && !isOurs) return ok(null);
  const { context, screen } = chat;
  const got = await askText(context, "owner-loop/admin", OUTBOX_FETCH, { n: item.n });
  // Acknowledged by another bxctl in between: it was shown there.
  if (!got.ok) return got.code === "not-found" ? ok(null) : got;
  if (context.wantsJson) printJson(context, itemJson(item, got.value.text));
  else if (item.kind === "reply") screen.reply(got.value.text);
  else screen.block(`${item.code ?? "notice"}: ${got.value.text}`);
  if (isOurs && item.turn !== null) chat.open.delete(item.turn);
  if (isOurs && item.kind === "notice") chat.outcome = EXIT_FAILED;
  const acknowledged = await ask(context, "owner-loop/admin", OUTBOX_ACK, { n: item.n });
  if (chat.open.size === 0 && !chat.isOnce) screen.prompt();
  return acknowledged.ok || isGone(acknowledged) ? ok(null) : acknowledged;
}

/** A failure that a restart of loopd explains; the item is then offered again. */
function isGone(failure: Err): boolean {
  return failure.code === "peer-down" || failure.code === "frame-closed";
}

function itemJson(item: Item, text: string) {
  const { session, turn, kind, code, label } = item;
  return { session, turn, kind, code, label, text };
}
