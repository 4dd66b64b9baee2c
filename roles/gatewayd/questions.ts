// Questions of brokerd to the owner, shown in their thread, and answers on their way back. Whether an
// answer counts is brokerd's to say; this only tells it where it was typed.
//
// 1. A question is shown in full or not at all: its lines are cut between posts, never inside.
// 2. Its posts are never edited; what became of it is a reply.
import type { BodyOf } from "../../shared/wire/exchange.ts";
import type { GATEWAY_ANSWER } from "../../shared/wire/broker_gateway.ts";
import { OUTCOME_TEXT } from "../../shared/wire/parts.ts";
import type { ApprovalId, SessionId } from "../../shared/ids/ids.ts";
import { fenceFor, points } from "./outgoing_text.ts";
import type { Parts } from "./parts.ts";
import { rootFor } from "./sender.ts";
import type { Asked, Store } from "./store.ts";

const YES = "white_check_mark";
const NO = "no_entry";
const UNSHOWN = "A question is too long for a post. Read and answer it with bxctl approvals.";
const LATE_MS = 60_000;
/** Room for a post's heading. */
const HEADING_POINTS = 40;

type QuestionsOptions =
  & Pick<Parts, "store" | "sender" | "peers" | "direct" | "limit" | "signal">
  & {
    /** Whether a reaction of the owner may answer. */
    readonly reactions: boolean;
  };

export interface Question {
  readonly approval: ApprovalId;
  readonly session: SessionId;
  readonly expiresUnixMs: number;
  readonly lines: readonly string[];
}

/** What became of a question, in words. */
const OUTCOMES: Readonly<Record<string, string>> = {
  approved: "Approved.",
  denied: "Denied; nothing was run.",
  expired: "Expired without an answer; nothing was run.",
  withdrawn: "No longer asked; nothing was run.",
};

export type Questions = ReturnType<typeof makeQuestions>;

export function makeQuestions(options: QuestionsOptions) {
  const { store, sender, peers } = options;
  const pressed = new Set<string>();
  const questions = {
    /** Shows a question; shown before, it changes nothing. */
    ask(question: Question): void {
      const { approval, session } = question;
      const place = placeOf(options, session);
      const key = `q${approval}`;
      const texts = postsFor(question.lines, options.limit());
      store.step(() => {
        texts.forEach((text, i) => {
          const root = place.root === "" && i > 0 ? `=${key}-0` : place.root;
          store.put({ key: `${key}-${i}`, channel: place.channel, root, text });
        });
        store.putAsked({
          approval,
          session,
          channel: place.channel,
          root: place.root === "" ? `=${key}-0` : place.root,
          last_key: `${key}-${texts.length - 1}`,
          code: texts[0] === UNSHOWN ? "" : codeIn(question.lines),
          expires_unix_ms: question.expiresUnixMs,
        });
      });
      sender.wakeAll();
    },
    /** Says in its thread what became of a question. */
    closed(approval: string, outcome: string): void {
      const asked = store.asked(approval);
      if (asked === undefined) return;
      const text = OUTCOMES[outcome] ?? "It is over.";
      store.step(() => {
        store.closeAsked(approval);
        store.put({ key: `c${approval}`, channel: asked.channel, root: asked.root, text });
      });
      sender.wakeAll();
    },
    /** Ends in words the questions that are past their time and that brokerd never spoke of again. */
    sweep(nowUnixMs: number): void {
      for (const one of store.openAsked()) {
        if (one.expires_unix_ms + LATE_MS < nowUnixMs) questions.closed(one.approval, "over");
      }
    },
    /** The session that a thread belongs to, and the question it was made for, if it was. */
    threadOf(
      root: string,
      session: SessionId,
    ): Pick<BodyOf<typeof GATEWAY_ANSWER["request"]>, "session" | "approval"> {
      const made = store.allAsked().find((one) =>
        one.root.startsWith("=") && rootFor(store, one.root) === root
      );
      return made === undefined
        ? { session, approval: null }
        : { session: made.session, approval: made.approval };
    },
    /** The owner pressed a reaction; it counts on the last post of an open question alone. */
    async reacted(postId: string, emoji: string): Promise<void> {
      if (!options.reactions || (emoji !== YES && emoji !== NO)) return;
      const asked = store.openAsked().find((one) => lastPost(store, one) === postId);
      if (asked === undefined || asked.code === "" || pressed.has(asked.approval)) return;
      pressed.add(asked.approval);
      const { session, approval, code } = asked;
      const answer = emoji === YES ? "approve" : "deny";
      const reply = await peers.answer({ code, answer, session, approval });
      if (options.signal.aborted) return;
      if (!reply.ok) return void pressed.delete(asked.approval);
      const { outcome } = reply.value.body;
      if (outcome !== "local_only") return questions.closed(approval, outcome);
      const text = `${OUTCOME_TEXT[outcome]}.`;
      store.put({ key: `l${approval}`, channel: asked.channel, root: asked.root, text });
      sender.wakeAll();
    },
    /** Posts whose reactions may be an answer. */
    watched: () =>
      options.reactions ? store.openAsked().flatMap((one) => lastPost(store, one) || []) : [],
  };
  return questions;
}

/** The code that a question's last line tells, for a reaction to answer with. */
function codeIn(lines: readonly string[]): string {
  return /!approve ([0-9a-z]+)/.exec(lines.at(-1) ?? "")?.[1] ?? "";
}

function lastPost(store: Store, asked: Asked): string {
  return store.outboxRow(asked.last_key)?.post ?? "";
}

/** A session's thread; one without gets a thread of its own for each question. */
function placeOf({ store, direct }: QuestionsOptions, session: SessionId) {
  if (!session.startsWith("mm-")) return { channel: direct, root: "" };
  return store.thread(session) ?? { channel: direct, root: session.slice(3) };
}

/** The lines in numbered posts, each in a fence that nothing in it can close. */
export function postsFor(lines: readonly string[], limit: number): string[] {
  const fence = fenceFor(lines);
  const room = limit - HEADING_POINTS - 2 * (fence.length + 1);
  const parts: string[][] = [[]];
  let size = 0;
  for (const line of lines) {
    const more = points(line) + 1;
    if (more > room) {
      return [UNSHOWN];
    }
    if (size + more > room) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(line);
    size += more;
  }
  return parts.map((part, i) => {
    const heading = parts.length === 1 ? "Question" : `Question, part ${i + 1} of ${parts.length}`;
    return [heading, "", fence, ...part, fence].join("\n");
  });
}
