// gatewayd in this process between a Mattermost double and stand-ins for loopd and brokerd, with every
// interval shortened. The stand-in of loopd keeps turns and its outbox the way loopd does: it takes a
// message once, answers in order, and tells of each item until it is acknowledged.
import { startGateway } from "../../roles/gatewayd/gateway.ts";
import { isLostSocket, type Network, networkOf } from "../../roles/gatewayd/network.ts";
import type { LoopEvent, Peers, Submitted } from "../../roles/gatewayd/peers.ts";
import { openStore, type Store } from "../../roles/gatewayd/store.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { ApprovalId, TurnId, ulid } from "../../shared/ids/ids.ts";
import { makeLog } from "../../shared/log/log.ts";
import { err, ok } from "../../shared/results/result.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import { secretOf } from "../../shared/secrets/secret_store.ts";
import type { AnswerOutcome } from "../../shared/wire/parts.ts";
import type { Knobs } from "./mattermost/knobs.ts";
import type { Post } from "./mattermost/model.ts";
import { type Rig, startRig } from "./mattermost/rig.ts";
import { assertSafePosts } from "./mattermost/safe_posts.ts";
import { placeByKey } from "./post_places.ts";

export const FACTOR = 100;

type Item = Extract<LoopEvent, { kind: "outbox_item" }>["body"];

export interface LoopDouble {
  readonly peers: Peers;
  readonly taken: Submitted[];
  readonly cancelled: string[];
  readonly answers: { code: string; answer: string; session: string; approval: string | null }[];
  readonly stops: string[];
  /** What is said to a message; null leaves the turn running. */
  reply: (message: Submitted) => string | null;
  /** What brokerd says to an answer. */
  outcome: AnswerOutcome;
  refuse: ErrorCode | null;
  /** Ends the turn of a message with this text. */
  finish(postId: string, text: string): void;
  /** An item that nobody asked for. */
  notice(session: Submitted["session"], text: string): void;
  state(session: Submitted["session"], body: Record<string, unknown>): void;
  /** Ends every watch, as a restart does. */
  restart(): void;
  pending(): number;
  item(n: number): Item;
  /** The session that an item belonged to. */
  sessionOf(item: number): string | undefined;
}

type LoopState = {
  readonly items: Map<number, { item: Item; text: string }>;
  readonly watchers: Set<{ tell(event: LoopEvent): void; end(): void }>;
  readonly byPost: Map<string, { submitted: Submitted; turn: TurnId; isOpen: boolean }>;
};

const turnId = () => TurnId.parse(`t-${ulid(Date.now(), systemRandom)}`);

export function loopDouble(): LoopDouble {
  const state: LoopState = { items: new Map(), watchers: new Set(), byPost: new Map() };
  const { items, watchers, byPost } = state;
  let next = 0;
  const sessions: string[] = [];
  const put = (of: Pick<Item, "session" | "turn" | "message_id" | "kind">, text: string) => {
    const item: Item = {
      ...of,
      n: next++,
      code: null,
      label: { class: "private", untrusted: false },
      created_unix_ms: Date.now(),
      bytes: new TextEncoder().encode(text).length,
    };
    items.set(item.n, { item, text });
    sessions[item.n] = item.session;
    for (const one of watchers) one.tell({ kind: "outbox_item", body: item });
  };
  const double: LoopDouble = {
    taken: [],
    cancelled: [],
    answers: [],
    stops: [],
    reply: (message) => `Answer to: ${message.text}`,
    outcome: "approved",
    refuse: null,
    finish(postId, text) {
      const one = byPost.get(postId);
      if (one?.isOpen !== true) throw new Error(`No open turn of ${postId}`);
      one.isOpen = false;
      const { session, messageId } = one.submitted;
      put({ session, turn: one.turn, message_id: messageId, kind: "reply" }, text);
    },
    notice: (session, text) => put({ session, turn: null, message_id: null, kind: "notice" }, text),
    state(session, more) {
      const none = { place: null, percent: null, tool: null, call: null, approval: null };
      const turn = [...byPost.values()].find((one) => one.submitted.session === session)?.turn;
      const body = { session, turn, state: "thinking", ...none, ...more };
      for (const one of watchers) {
        one.tell(JSON.parse(JSON.stringify({ kind: "turn_state", body })));
      }
    },
    restart: () => [...watchers].forEach((one) => one.end()),
    pending: () => items.size,
    item(n) {
      const found = items.get(n);
      if (found === undefined) throw new Error(`No item ${n}`);
      return found.item;
    },
    sessionOf: (item) => sessions[item],
    peers: peersOf(() => double, state),
  };
  return double;
}

function peersOf(own: () => LoopDouble, { items, watchers, byPost }: LoopState): Peers {
  return {
    submit(message) {
      const { refuse } = own();
      if (refuse !== null) return Promise.resolve(err(refuse, "as told"));
      const known = byPost.get(message.messageId);
      const { session } = message;
      const accepted = (turn: TurnId, is_duplicate: boolean) =>
        Promise.resolve(ok({
          kind: "turn_accepted" as const,
          body: { session, turn, is_duplicate },
        }));
      if (known !== undefined) return accepted(known.turn, true);
      const made = { submitted: message, turn: turnId(), isOpen: true };
      byPost.set(message.messageId, made);
      own().taken.push(message);
      const text = own().reply(message);
      if (text !== null) queueMicrotask(() => own().finish(message.messageId, text));
      return accepted(made.turn, false);
    },
    cancel(session) {
      own().cancelled.push(session);
      const open = [...byPost.values()].find((one) =>
        one.submitted.session === session && one.isOpen
      );
      if (open !== undefined) own().finish(open.submitted.messageId, "The turn was cancelled.");
      const body = { turn: open?.turn ?? null };
      return Promise.resolve(ok({ kind: "turn_cancelled" as const, body }));
    },
    watch: (onEvent, signal) =>
      new Promise((resolve) => {
        const end = () => {
          watchers.delete(watcher);
          signal.removeEventListener("abort", end);
          resolve(ok({ kind: "watch_end", body: { why: "over" } }));
        };
        const watcher = { tell: onEvent, end };
        watchers.add(watcher);
        signal.addEventListener("abort", end);
        if (signal.aborted) end();
        for (const { item } of items.values()) onEvent({ kind: "outbox_item", body: item });
      }),
    fetch(n) {
      const one = items.get(n);
      return Promise.resolve(one === undefined ? err("not-found", "none") : ok(one.text));
    },
    ack(n) {
      items.delete(n);
      return Promise.resolve(ok({ kind: "ok" as const, body: {} }));
    },
    status: () => Promise.resolve(err("peer-down", "no loopd here")),
    answer(body) {
      own().answers.push(body);
      const { outcome } = own();
      const isDone = outcome === "approved" || outcome === "denied";
      const approval = isDone ? ApprovalId.parse(`a-${ulid(1, systemRandom)}`) : null;
      return Promise.resolve(ok({
        kind: "approval_answered" as const,
        body: { outcome, approval: body.approval ?? approval, tool: isDone ? "read_file" : null },
      }));
    },
    stop(why) {
      own().stops.push(why);
      return Promise.resolve(ok({ kind: "stop_state" as const, body: { is_stopped: true } }));
    },
  };
}

export interface GatewayHouse extends AsyncDisposable {
  readonly rig: Rig;
  readonly loop: LoopDouble;
  readonly log: string[];
  store(): Store;
  gateway(): ReturnType<typeof startGateway>;
  /** The owner writes; gives the post. */
  write(message: string, root?: string): Post;
  /** What stands in the channel, the owner's own posts left out. */
  answers(): Post[];
  thread(root: string): Post[];
  /** Waits until it holds, and fails with `what` when it does not in time. */
  until(what: string, holds: () => boolean): Promise<void>;
  /** Connected, caught up and listening. */
  ready(): Promise<void>;
  stopGateway(): Promise<void>;
  startGateway(): void;
}

export interface HouseOptions {
  readonly knobs?: Partial<Knobs>;
  readonly config?: Record<string, unknown>;
  readonly mattermost?: Record<string, unknown>;
  readonly loop?: LoopDouble;
  /** Whether no post at all is as it should be. */
  readonly isSilent?: true;
  readonly before?: (rig: Rig) => void;
  /** What the server answers instead of its own text. */
  readonly rewrite?: (path: string, text: string) => string;
  /** What the connection brings instead of its own text. */
  readonly told?: (text: string) => string;
}

/** The way to a server without a certificate. */
export function plainNetwork(): Network {
  const network = networkOf(null);
  if (!network.ok) throw new Error(network.detail);
  return network.value;
}

function rewriting(plain: Network, { rewrite, told }: HouseOptions): Network {
  const open: Network["open"] = (url, headers, on) =>
    plain.open(url, headers, { ...on, message: (text) => on.message(told?.(text) ?? text) });
  if (rewrite === undefined) return { ...plain, open };
  return {
    ...plain,
    open,
    async fetch(input, init) {
      const answer = await plain.fetch(input, init);
      const { status, headers } = answer;
      return new Response(rewrite(String(input), await answer.text()), { status, headers });
    },
  };
}

/** As gatewayd's process does; the answer undoes it. */
function letGoOfLostSockets(): () => void {
  const onRejection = (event: PromiseRejectionEvent) => {
    if (isLostSocket(event.reason)) event.preventDefault();
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  return () => globalThis.removeEventListener("unhandledrejection", onRejection);
}

export async function gatewayHouse(options: HouseOptions = {}): Promise<GatewayHouse> {
  const rig = await startRig({
    timeScale: 0.02,
    ...(options.knobs ? { knobs: options.knobs } : {}),
  });
  options.before?.(rig);
  const folder = await Deno.makeTempDir({ prefix: "bxg" });
  const loop = options.loop ?? loopDouble();
  const log: string[] = [];
  const network = rewriting(plainNetwork(), options);
  const heedAll = letGoOfLostSockets();
  const config = GatewaydConfig.parse({
    mattermost: { url: rig.double.url, owner_id: rig.owner.id, ...options.mattermost },
    test: { timers_divided_by: FACTOR },
    ...options.config,
  });
  let store: Store;
  let running: ReturnType<typeof startGateway> | null = null;
  const house: GatewayHouse = {
    rig,
    loop,
    log,
    store: () => store,
    gateway() {
      if (running === null) throw new Error("gatewayd does not run");
      return running;
    },
    write: (message, root = "") =>
      rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message, root_id: root }),
    answers: () => rig.double.postsIn(rig.dm).filter((post) => post.user_id === rig.bot.id),
    thread: (root) =>
      rig.double.postsIn(rig.dm).filter((post) => post.id === root || post.root_id === root),
    async until(what, holds) {
      for (let i = 0; i < 1_000; i++) {
        if (holds()) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const posts = rig.double.postsIn(rig.dm).map((post) => `${post.root_id}: ${post.message}`);
      throw new Error(`${what}\n${posts.join("\n")}\n${log.join("")}`);
    },
    async ready() {
      await house.until("connected", () => running?.health.state() === "connected");
      await house.until("caught up", () => store.cursor(rig.dm) !== undefined);
    },
    async stopGateway() {
      await running?.stop();
      running = null;
    },
    startGateway() {
      store = openStore(`${folder}/queue.db`, systemClock.nowUnixMs);
      running = startGateway({
        config,
        base: rig.double.url,
        token: secretOf(rig.bot.token),
        clock: systemClock,
        random: systemRandom,
        log: makeLog("gatewayd", systemClock, (line) => void log.push(line)),
        store,
        peers: loop.peers,
        network,
      });
    },
    async [Symbol.asyncDispose]() {
      await house.stopGateway();
      network.close();
      heedAll();
      await rig.double.stop();
      await Deno.remove(folder, { recursive: true });
      if (log.join("").includes(rig.bot.token)) throw new Error("The token is in the log");
      assertSafePosts(rig.double.traffic(), {
        botId: rig.bot.id,
        threadOf: placeByKey(rig.double.post, loop.sessionOf),
        maxPostSize: options.knobs?.maxPostSize ?? 16_383,
        ...(options.isSilent ? { mayBeEmpty: true } : {}),
      });
    },
  };
  house.startGateway();
  return house;
}
