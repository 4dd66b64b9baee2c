// Resumable streams: the bytes of an answer kept under the client's own conversation id, replayed
// from any offset and followed live. Only such a stream outlives its connection.

export type Conversation = {
  readonly id: string;
  readonly startedUnixS: number;
  completedUnixS: number | null;
  readonly pieces: Uint8Array[];
  totalBytes: number;
  /** Woken by every piece and by the end. */
  readonly followers: Set<() => void>;
  readonly cancel: AbortController;
};

export type Conversations = Map<string, Conversation>;

export function beginConversation(all: Conversations, id: string): Conversation {
  all.get(id)?.cancel.abort();
  const conversation: Conversation = {
    id,
    startedUnixS: Math.floor(Date.now() / 1000),
    completedUnixS: null,
    pieces: [],
    totalBytes: 0,
    followers: new Set(),
    cancel: new AbortController(),
  };
  all.set(id, conversation);
  return conversation;
}

export function keepBytes(conversation: Conversation, bytes: Uint8Array): void {
  conversation.pieces.push(bytes);
  conversation.totalBytes += bytes.length;
  for (const wake of conversation.followers) wake();
}

export function finishConversation(conversation: Conversation): void {
  conversation.completedUnixS = Math.floor(Date.now() / 1000);
  for (const wake of conversation.followers) wake();
}

/** What the lookup endpoint says of the ids that are known. */
export function lookup(all: Conversations, ids: readonly unknown[]): unknown[] {
  return ids.flatMap((id) => {
    const found = typeof id === "string" ? all.get(id) : undefined;
    return found === undefined ? [] : [{
      conversation_id: found.id,
      is_done: found.completedUnixS !== null,
      total_bytes: found.totalBytes,
      started_at: found.startedUnixS,
      completed_at: found.completedUnixS ?? 0,
    }];
  });
}

/** The conversation's bytes from `offset`, then what comes, until it ends or `signal` aborts. */
export async function* follow(
  conversation: Conversation,
  offset: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let skip = offset;
  let next = 0;
  while (!signal.aborted) {
    for (; next < conversation.pieces.length; next++) {
      const piece = conversation.pieces[next] ?? new Uint8Array(0);
      if (skip < piece.length) yield piece.subarray(skip);
      skip = Math.max(0, skip - piece.length);
    }
    if (conversation.completedUnixS !== null) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        conversation.followers.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      conversation.followers.add(wake);
      signal.addEventListener("abort", wake);
    });
  }
}
