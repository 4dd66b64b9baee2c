// What comes in, by whatever way: as an event, by catch-up, replayed. All of it goes through here, and
// nothing counts before it is in the queue.
//
// 1. Only a post's creation starts anything. An edit can change what is still waiting, a deletion can
//    take it away; neither is ever an instruction.
// 2. What is not the owner's is ignored without an answer, and counted.
import { MessageId, SessionId } from "../../shared/ids/ids.ts";
import { commandOf } from "./commands.ts";
import { parseSaid, Post, Reaction } from "./mattermost.ts";
import type { Parts } from "./parts.ts";
import type { Outbound } from "./store.ts";
import { isOwners, rootOf, typedText } from "./trust.ts";

/** The server lets no post have more files. */
const MAX_FILES = 10;

type IntakeOptions = Pick<Parts, "store" | "health" | "place"> & {
  /** The owner pressed a reaction on a post. */
  readonly onReaction: (postId: string, emoji: string) => void;
  /** An own post came back before its request was answered. */
  readonly onPosted: (row: Outbound) => void;
  /** Something new is in the queue. */
  readonly onWork: () => void;
};

export type Intake = ReturnType<typeof makeIntake>;

export function makeIntake(options: IntakeOptions) {
  const { store, health, place, onWork } = options;
  /** Whether a post is older than the first start. */
  const isOld = (post: Post): boolean => {
    const floor = store.cursor(post.channel_id)?.floor ?? 0;
    // A floor from a clock that was set back since holds for posts of that time alone.
    return post.create_at <= floor && (!health.isAhead(floor) || health.isAhead(post.create_at));
  };
  const intake = {
    onWork,
    /** Whether a post would be taken and is not yet. */
    isNews: (post: Post) => isOwners(post, place) && !isOld(post) && !store.inboxRow(post.id),
    /** A post that was created at some time. */
    created(post: Post, as: "turn" | "skipped" = "turn"): void {
      // An own post that comes back has arrived.
      if (post.user_id === place.self) return confirm(post);
      if (!isOwners(post, place)) return health.ignore();
      if (!isOld(post) && store.take(rowOf(post, as))) onWork();
    },
    edited(post: Post): void {
      const row = store.inboxRow(post.id);
      if (row === undefined || row.kind !== "turn" || !isOwners(post, place)) return;
      const now = rowOf(post, "turn");
      // Pins and the like come as edits too.
      if (post.edit_at <= row.edit_at || (now.text === row.text && now.files === row.files)) return;
      if (row.state === "new") return store.editInbox(post.id, now.text, now.files, post.edit_at);
      if (row.state !== "sent") return;
      const text = "The edit came after I had read the message. Write what is new as a message.";
      store.put({ key: `e${post.id}-${post.edit_at}`, channel: row.channel, root: row.root, text });
      onWork();
    },
    deleted(postId: string): void {
      store.step(() => {
        for (const row of store.takenAwayBy(postId)) store.setInbox(row.post, "done");
      });
      onWork();
    },
    /** An event of the connection. */
    event(event: string, data: Readonly<Record<string, unknown>>): void {
      // Posts and reactions are JSON inside a string.
      if (event === "posted" || event === "post_edited" || event === "post_deleted") {
        const post = Post.safeParse(parseSaid(data.post));
        if (!post.success) return;
        if (event === "posted") intake.created(post.data);
        else if (event === "post_edited") intake.edited(post.data);
        else intake.deleted(post.data.id);
      } else if (event === "reaction_added") {
        intake.reaction(parseSaid(data.reaction));
      }
    },
    /** A reaction that was made at some time; one that is none counts for nothing. */
    reaction(said: unknown): void {
      const { data } = Reaction.safeParse(said);
      if (data?.user_id === place.owner) options.onReaction(data.post_id, data.emoji_name);
    },
  };
  const confirm = (post: Post) => {
    const key = post.props?.boxmaker_out;
    const row = typeof key === "string" ? store.outboxRow(key) : undefined;
    if (row?.state !== "tried" || row.draft !== "") return;
    store.posted(row.key, post.id);
    options.onPosted(row);
  };
  return intake;
}

function rowOf(post: Post, as: "turn" | "skipped") {
  const text = typedText(post);
  const listed = post.metadata?.files?.map((file) => file.id) ?? [];
  const files = (post.file_ids ?? listed).filter((id) => /^[a-z0-9]{26}$/.test(id))
    .slice(0, MAX_FILES);
  const isCommand = commandOf(text) !== null;
  const isNothing = text.trim() === "" && files.length === 0;
  const kind = as === "skipped" || isNothing ? "skipped" : isCommand ? "command" : "turn";
  return {
    post: MessageId.parse(post.id),
    channel: post.channel_id,
    root: rootOf(post),
    session: SessionId.parse(`mm-${rootOf(post)}`),
    at: post.create_at,
    edit_at: post.edit_at,
    kind,
    text,
    files: files.join(" "),
    state: kind === "skipped" ? "done" as const : "new" as const,
  } as const;
}
