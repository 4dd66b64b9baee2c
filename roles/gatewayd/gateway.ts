// gatewayd put together: the server on one side, loopd and brokerd on the other, the queue between.
// Everything it needs from outside is passed in, so that tests run it as the process does.
import { isoTime } from "../../shared/clock/clock.ts";
import type { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { makeAttachments } from "./attachments.ts";
import { catchUp, type CatchUpOptions, firstLook } from "./catch_up.ts";
import { keepConnected } from "./connection.ts";
import { type Health, makeHealth } from "./health.ts";
import { makeIntake } from "./intake.ts";
import { introduce, type Introduced, postLimit, whoAmI } from "./introduction.ts";
import { makeOrders } from "./orders.ts";
import { capital, defused } from "./outgoing_text.ts";
import type { Network } from "./network.ts";
import type { Parts } from "./parts.ts";
import { makeQuestions, type Questions } from "./questions.ts";
import { makeRest } from "./rest.ts";
import { makeSender, type Sender } from "./sender.ts";
import type { Outbound, Store } from "./store.ts";
import { timersOf } from "./timers.ts";
import { makeTurns } from "./turns.ts";

const MAX_HELD = 5_000;
const NOTICES = "notices";

type GatewayOptions =
  & Pick<Parts, "base" | "token" | "clock" | "random" | "log" | "store" | "peers">
  & {
    readonly config: GatewaydConfig;
    readonly network: Network;
  };

export interface Gateway {
  /** The questions' desk; null until the server has been met. */
  questions(): Questions | null;
  /** Posts a line of the house's own. */
  notice(id: string, text: string): boolean;
  readonly health: Health;
  summary(): string;
  stop(): Promise<void>;
}

/** Starts the channel; it goes on, through whatever happens, until it is stopped. */
export function startGateway(options: GatewayOptions): Gateway {
  const { config, clock, random, store } = options;
  const timers = timersOf(config.test.timers_divided_by, random);
  const stopping = new AbortController();
  const health = makeHealth(clock, options.log, timers.pingMs);
  const met: Met = {
    questions: null,
    sender: null,
    direct: "",
    limit: 0,
    needsLimit: true,
    version: "",
  };
  const rest = makeRest({
    ...options,
    fetch: options.network.fetch,
    timers,
    health,
    signal: stopping.signal,
    onVersion: () => void (met.needsLimit = true),
  });
  const inner: Inner = { ...options, timers, health, rest, met, signal: stopping.signal };
  const running = run(inner);
  async function run(given: Inner): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const introduced = await introduce(rest, config.mattermost, health);
      if (introduced.ok) {
        health.clear("channel-token-refused", "channel-unreachable");
        return await serve(given, introduced.value);
      }
      health.set(introduced.code, introduced.detail);
      const isSlow = introduced.code !== "channel-unreachable";
      await clock.sleep(isSlow ? timers.probeMs : timers.pauseMs(n), stopping.signal);
    }
  }
  return {
    questions: () => met.questions,
    notice(id, text) {
      if (met.sender === null) return false;
      const post = { channel: met.direct, text: defused(text) };
      store.step(() => {
        const heading = "Notices of the house come in this thread.";
        store.put({ key: NOTICES, channel: met.direct, root: "", text: heading });
        store.put({ ...post, key: `n${id}`, root: `=${NOTICES}` });
      });
      met.sender.wakeAll();
      return true;
    },
    health,
    summary: () => summaryOf(health, store),
    async stop() {
      stopping.abort();
      await running;
      store.close();
    },
  };
}

type Met = {
  questions: Questions | null;
  sender: Sender | null;
  direct: string;
  limit: number;
  needsLimit: boolean;
  version: string;
};
type Inner = GatewayOptions & Pick<Parts, "timers" | "health" | "rest" | "signal"> & {
  readonly met: Met;
};

function summaryOf(health: Health, store: Store): string {
  const parts = [
    [store.waiting(), "message under way"],
    [store.unsent(), "post to send"],
    [health.ignored(), "message of others ignored"],
  ] as const;
  const told = parts.filter(([n]) => n > 0)
    .map(([n, what]) => `; ${n} ${n === 1 ? what : what.replace(/(message|post)/, "$1s")}`);
  return capital(health.state()) + told.join("");
}

async function serve(inner: Inner, { place, direct }: Introduced): Promise<void> {
  const { store, clock, timers, health, rest, met, signal, config } = inner;
  const { attach_bytes } = config.mattermost;
  const attachments = makeAttachments(rest, attach_bytes);
  met.direct = direct;
  const readLimit = async () => {
    met.needsLimit = false;
    return met.limit = await postLimit(rest);
  };
  await readLimit();
  const limit = () => met.limit;
  const onEnded = (row: Outbound) => turns.rowEnded(row);
  const sender = makeSender({ ...inner, place, readLimit, onEnded });
  const turns = makeTurns({ ...inner, sender, attachments, direct, limit });
  const { reactions } = config.approvals;
  const questions = makeQuestions({ ...inner, sender, direct, limit, reactions });
  const summary = () => summaryOf(health, store);
  const orders = makeOrders({ ...inner, sender, turns, questions, summary });
  const onWork = together(() => {
    if (signal.aborted) return;
    orders();
    turns.pump();
  });
  const onReaction = (post: string, emoji: string) => void questions.reacted(post, emoji);
  const intake = makeIntake({ ...inner, place, onWork, onPosted: turns.rowEnded, onReaction });
  const reading = { ...inner, intake, place, watched: questions.watched };
  const events = heldEvents(inner, reading, readLimit);
  for (let n = 0; !signal.aborted && !await firstLook(reading); n++) {
    await clock.sleep(timers.pauseMs(n), signal);
  }
  met.sender = sender;
  met.questions = questions;
  onWork();
  const everySoOften = async () => {
    while (!signal.aborted) {
      await clock.sleep(timers.catchUpMs, signal);
      store.prune();
      questions.sweep(clock.nowUnixMs());
      events.missed();
    }
  };
  await Promise.all([
    turns.follow(),
    everySoOften(),
    probing(inner),
    keepConnected({
      ...inner,
      open: inner.network.open,
      onUp: (how) => {
        if (how === "new") tellOutage(inner, sender, direct);
        events.missed();
      },
      onEvent: (event, data) => {
        if (event === "config_changed") met.needsLimit = true;
        events.take(event, data);
      },
      onVersion: (version) => {
        if (met.version !== "" && met.version !== version) met.needsLimit = true;
        met.version = version;
      },
      check: () => check(inner),
    }),
  ]);
  await events.settled();
  await sender.stopped();
}

/** However often it is called in one go, `then` runs once after it, outside every transaction. */
function together(then: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    queueMicrotask(() => {
      isDue = false;
      then();
    });
  };
}

/** Events wait while what was missed before them is being read. */
function heldEvents(inner: Inner, reading: CatchUpOptions, readLimit: () => Promise<number>) {
  const { clock, timers, signal, met, log, health } = inner;
  let held: (readonly [string, Readonly<Record<string, unknown>>])[] | null = null;
  let isMissing = false;
  let round: Promise<void> = Promise.resolve();
  const read = async () => {
    for (let n = 0; isMissing && !signal.aborted; n++) {
      isMissing = false;
      if (met.needsLimit) await readLimit();
      if (await catchUp(reading)) {
        health.clear("channel-unreachable");
        continue;
      }
      health.set("channel-unreachable", "A catch-up could not be read to its end");
      isMissing = true;
      await clock.sleep(timers.pauseMs(n), signal);
    }
    const waiting = held ?? [];
    held = null;
    if (signal.aborted) return;
    for (const [event, data] of waiting) reading.intake.event(event, data);
  };
  return {
    missed(): void {
      isMissing = true;
      if (held !== null) return;
      held = [];
      round = read();
    },
    take(event: string, data: Readonly<Record<string, unknown>>): void {
      if (held === null) return reading.intake.event(event, data);
      if (held.length < MAX_HELD) return void held.push([event, data]);
      log.warn("Too many events came during a catch-up; it begins anew");
      held = [];
      isMissing = true;
    },
    settled: () => round,
  };
}

/** A token that was refused once may be good again while the connection never broke. */
async function probing(inner: Inner): Promise<void> {
  const { clock, timers, signal, health } = inner;
  while (!signal.aborted) {
    await clock.sleep(timers.probeMs, signal);
    if (health.isRefused()) await check(inner);
  }
}

/** Whether the bot is still itself; comes back when it is, or when only the server is away. */
async function check({ rest, health, clock, timers, signal }: Inner): Promise<void> {
  let isUnfit = false;
  while (!signal.aborted) {
    const me = await whoAmI(rest);
    if (me.ok) {
      if (isUnfit) health.clear("channel-misconfigured");
      return health.clear("channel-token-refused");
    }
    health.set(me.code, me.detail);
    if (me.code === "channel-unreachable") return;
    isUnfit ||= me.code === "channel-misconfigured";
    await clock.sleep(timers.probeMs, signal);
  }
}

/** After an outage that lasted, the owner is told of it. */
function tellOutage({ health, timers, store }: Inner, sender: Sender, direct: string): void {
  const codes = health.problems().map((one) => one.code).join(", ");
  const outage = health.up();
  if (outage === null || outage.lastedMs < timers.outageMs) return;
  const minutes = Math.max(1, Math.round(outage.lastedMs / 60_000));
  const why = codes === "" ? "" : ` (${codes})`;
  const text =
    `The channel was down for ${minutes} min from ${isoTime(outage.sinceUnixMs)}${why}. ` +
    "What you wrote meanwhile is being answered now.";
  store.put({ key: `h${outage.sinceUnixMs}`, channel: direct, root: "", text });
  sender.wakeAll();
}
