// The channel under everything that goes wrong between a phone and the model: a real gatewayd and a
// real loopd, killed at random moments, and a Mattermost server whose lines break, which goes deaf,
// limits, restarts, and loses answers after it has carried out what was asked.
import type { MattermostDouble } from "../doubles/mattermost/double.ts";
import { placeByKey } from "../doubles/post_places.ts";
import { unsafePosts } from "../doubles/mattermost/safe_posts.ts";
import {
  type ChannelHouse,
  listening,
  loadedDice,
  pause,
  startChannelHouse,
} from "./channel_house.ts";
import { makeTrouble } from "./channel_troubles.ts";
import { type Sent, verdict } from "./channel_verdict.ts";
import { pssOf } from "../doubles/role_process.ts";

/** Messages that may wait for their answers at once, and threads that are written in at once. */
const WINDOW = 20;
const THREADS = 16;
const PER_THREAD = 12;
const PROGRESS_MS = 20_000;

export interface Outcome {
  readonly messages: number;
  /** How often each trouble was made. */
  readonly faults: Readonly<Record<string, number>>;
  /** What was wrong; empty when every message was answered once, in its thread, in order. */
  readonly problems: readonly string[];
  /** Where logs, the queue and the server's state were left; only when something was wrong. */
  readonly leftAt: string | null;
}

export interface Campaign {
  readonly messages: number;
  readonly seed: number;
  /** Milliseconds without any new answer after which a message counts as lost. */
  readonly patienceMs: number;
  readonly say?: (line: string) => void;
  /** No trouble at all, and every message begins a thread: to see what memory does. */
  readonly isCalm?: boolean;
}

export async function campaign(options: Campaign): Promise<Outcome> {
  const house = await startChannelHouse();
  const faults: Record<string, number> = {};
  const note = (what: string) => {
    faults[what] = (faults[what] ?? 0) + 1;
  };
  const roll = loadedDice(options.seed);
  let isOver = false;
  const problems: string[] = [];
  let messages = 0;
  try {
    await listening(house);
    const trouble = options.isCalm === true
      ? Promise.resolve()
      : makeTrouble(house, roll, note, () => isOver);
    trouble.catch(() => {});
    const sent = await converse(house, options, roll);
    messages = sent.length;
    isOver = true;
    await trouble;
    const { dm, bot } = house.place;
    const posts = house.double().postsIn(dm).filter((post) => post.user_id === bot.id);
    problems.push(
      ...(messages < options.messages ? [`only ${messages} messages were written`] : []),
      ...verdict(posts, sent),
      ...unsafePosts(house.sent(), {
        botId: bot.id,
        threadOf: placeByKey((id) => house.double().post(id)),
      }),
      ...house.roles.flatMap((role) => role.problems),
    );
  } finally {
    isOver = true;
    await house.stop();
    if (problems.length === 0) await Deno.remove(house.base, { recursive: true });
  }
  return { messages, faults, problems, leftAt: problems.length === 0 ? null : house.base };
}

type Thread = { readonly root: string; readonly size: number };

/** Writes message after message, in threads old and new, and waits until all are answered. */
async function converse(
  house: ChannelHouse,
  options: Campaign,
  roll: (sides: number) => number,
): Promise<Sent[]> {
  const { messages, patienceMs, say = () => {} } = options;
  const sent: Sent[] = [];
  const threads: Thread[] = [];
  let lastCount = 0;
  let quietSince = performance.now();
  let saidAt = performance.now();
  while (true) {
    const done = house.answered().size;
    const now = performance.now();
    if (done !== lastCount) quietSince = now;
    lastCount = done;
    if (now - saidAt > PROGRESS_MS) {
      saidAt = now;
      const pss = pssOf(house.roles[0].pid()) ?? "?";
      say(`${sent.length} written, ${done} answered, gatewayd ${pss} kB`);
    }
    if (done >= messages || now - quietSince > patienceMs) break;
    if (!house.isDown() && sent.length < messages && sent.length - done < WINDOW) {
      const at = options.isCalm === true ? threads.length : roll(THREADS);
      sent.push(write(house.double(), house, threads, at, `m${sent.length}`));
      await pause(roll(40));
    } else await pause(20);
  }
  // What would come twice comes soon.
  await pause(1_500);
  return sent;
}

function write(
  double: MattermostDouble,
  { place }: ChannelHouse,
  threads: Thread[],
  at: number,
  word: string,
): Sent {
  const thread = threads[at];
  const isNew = thread === undefined || thread.size >= PER_THREAD;
  const post = double.postAs(place.owner.id, {
    channel_id: place.dm,
    message: word,
    root_id: isNew ? "" : thread.root,
  });
  const root = isNew ? post.id : thread.root;
  const kept = { root, size: isNew ? 1 : thread.size + 1 };
  if (thread === undefined) threads.push(kept);
  else threads[at] = kept;
  return { root, word };
}
