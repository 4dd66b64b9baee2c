// What is wrong after a campaign, judged from the channel alone: each message has one answer, in its
// thread, in the order in which they were written there, and nothing else was left behind.

export interface Sent {
  readonly root: string;
  /** `m` and a number; its answer begins with "Did" and this word. */
  readonly word: string;
}

export interface Seen {
  readonly root_id: string;
  readonly message: string;
}

/** What the house may say by itself in a campaign. */
const NOTES = [/^The channel was down for \d+ min from /];

/** The word that a post answers, or nothing. */
export function wordOf(message: string): string {
  return /^Did (m[0-9]+) /.exec(message)?.[1] ?? "";
}

/** One sentence for each problem. `posts` are the bot's, oldest first. */
export function verdict(posts: readonly Seen[], sent: readonly Sent[]): string[] {
  const byWord = Map.groupBy(posts, (post) => wordOf(post.message));
  const byRoot = Map.groupBy(posts, (post) => post.root_id);
  const inThread = (root: string) =>
    (byRoot.get(root) ?? []).map((post) => post.message.slice(0, 80)).join(" | ");
  const problems = sent.flatMap(({ word, root }) => {
    const own = byWord.get(word) ?? [];
    const strays = own.filter((post) => post.root_id !== root);
    const told = `its thread has: ${inThread(root)}`;
    return [
      ...(own.length === 1 ? [] : [`${word} was answered ${own.length} times; ${told}`]),
      ...strays.map((post) => `${word} was answered under ${post.root_id}; ${told}`),
    ];
  });
  for (const [root, asked] of Map.groupBy(sent, (one) => one.root)) {
    const words = asked.map((one) => one.word).join();
    const told = (byRoot.get(root) ?? []).map((post) => wordOf(post.message))
      .filter((word) => word !== "").join();
    if (words !== told) problems.push(`the order of ${words} became ${told}`);
  }
  const known = new Set(sent.map((one) => one.word));
  for (const { message } of posts) {
    if (known.has(wordOf(message)) || NOTES.some((note) => note.test(message))) continue;
    problems.push(`a post was left that answers nothing: ${message.slice(0, 200)}`);
  }
  return problems;
}
