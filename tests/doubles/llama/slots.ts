// Slots, their queue and their token caches. A slot keeps the tokens that were evaluated in it; the
// next prompt finds their common prefix, at most all but one of its own tokens. A busy slot makes
// the request wait without a byte; a freed slot takes first who asked for it, then who came first.
import type { Knobs } from "./knobs.ts";
import { commonPrefix } from "./tokens.ts";

export type Slot = {
  readonly id: number;
  tokens: readonly number[];
  /** Prompt lengths at which a model that cannot cut its state kept a copy of it. */
  checkpoints: readonly number[];
  busy: boolean;
  lastUsed: number;
  /** Of the running task, for `/slots`. */
  task: SlotTask;
  started: boolean;
};

export type SlotTask = {
  readonly id: number;
  processed: number;
  readonly cached: number;
  decoded: number;
  /** Tokens it may generate; 0 before that is known. */
  limit: number;
};

export type Grant = { readonly slot: Slot; readonly cacheN: number };

export type SlotPool = {
  readonly slots: readonly Slot[];
  /** Waits for a slot; null when `signal` aborted first. */
  acquire(ask: SlotAsk, signal: AbortSignal): Promise<Grant | null>;
  /** Frees the slot, which keeps `tokens`. */
  release(slot: Slot, tokens: readonly number[]): void;
  /** Forgets every token, also those in host memory (sleep, unload). */
  forgetAll(): void;
  waiting(): number;
};

export type SlotAsk = {
  /** -1 = any; wraps modulo the slot count. */
  readonly idSlot: number;
  readonly tokens: readonly number[];
  readonly useCache: boolean;
  readonly knobs: Knobs;
};

const SIMILARITY = 0.1;
const KEEP_HALF = 0.5;
const RAM_KEEP = 0.25;
const RAM_ENTRIES = 16;

type Waiter = { readonly want: number; readonly ask: SlotAsk; readonly go: (g: Grant) => void };

/** @param cutting `hybrid` models fall back to a checkpoint when a prompt does not extend theirs */
export function slotPool(count: number, cutting: "any" | "hybrid"): SlotPool {
  const slots = Array.from({ length: count }, (_, id) => freshSlot(id));
  const waiters: Waiter[] = [];
  const ram = hostCache();
  let clock = 0;
  let tasks = 0;

  const start = (slot: Slot, ask: SlotAsk, isOldest: boolean): Grant => {
    slot.busy = true;
    slot.lastUsed = ++clock;
    const shared = commonPrefix(slot.tokens, ask.tokens);
    // A pinned empty slot has nothing to lose, and so never looks into host memory either.
    const loses = shared < KEEP_HALF * slot.tokens.length || isOldest;
    if (ask.useCache && loses) ram.exchange(slot, ask);
    const cacheN = ask.useCache ? reuse(slot, ask, cutting) : 0;
    slot.task = { id: ++tasks, processed: 0, cached: cacheN, decoded: 0, limit: 0 };
    slot.started = true;
    return { slot, cacheN };
  };
  const choose = (ask: SlotAsk): { slot: Slot; isOldest: boolean } | null => {
    const pinned = ask.idSlot >= 0 ? slots[ask.idSlot % count] : undefined;
    if (pinned !== undefined) return pinned.busy ? null : { slot: pinned, isOldest: false };
    const free = slots.filter((s) => !s.busy);
    const likeness = (s: Slot) => commonPrefix(s.tokens, ask.tokens) / ask.tokens.length;
    const best = free.toSorted((a, b) => likeness(b) - likeness(a))[0];
    if (best !== undefined && likeness(best) > SIMILARITY) return { slot: best, isOldest: false };
    const oldest = free.toSorted((a, b) => a.lastUsed - b.lastUsed)[0];
    return oldest === undefined ? null : { slot: oldest, isOldest: true };
  };
  return {
    slots,
    acquire: (ask, signal) => {
      if (signal.aborted) return Promise.resolve(null);
      const chosen = choose(ask);
      if (chosen !== null) return Promise.resolve(start(chosen.slot, ask, chosen.isOldest));
      return new Promise((resolve) => {
        const leave = () => {
          waiters.splice(waiters.indexOf(waiter), 1);
          resolve(null);
        };
        const go = (grant: Grant) => {
          signal.removeEventListener("abort", leave);
          resolve(grant);
        };
        const waiter = { want: ask.idSlot >= 0 ? ask.idSlot % count : -1, ask, go };
        waiters.push(waiter);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    release: (slot, tokens) => {
      slot.busy = false;
      slot.tokens = tokens;
      slot.task = { ...slot.task, processed: 0, cached: 0, decoded: 0 };
      const asked = waiters.find((w) => w.want === slot.id) ?? waiters.find((w) => w.want < 0);
      if (asked === undefined) return;
      waiters.splice(waiters.indexOf(asked), 1);
      asked.go(start(slot, asked.ask, false));
    },
    forgetAll: () => {
      ram.clear();
      for (const slot of slots) {
        slot.tokens = [];
        slot.checkpoints = [];
        slot.started = false;
      }
    },
    waiting: () => waiters.length,
  };
}

type HostCache = {
  /** Moves the slot's tokens out and a better entry, if there is one, in. */
  readonly exchange: (slot: Slot, ask: SlotAsk) => void;
  readonly clear: () => void;
};

function hostCache(): HostCache {
  let entries: (readonly number[])[] = [];
  return {
    exchange: (slot, ask) => {
      const own = slot.tokens;
      let best = commonPrefix(own, ask.tokens);
      if (ask.knobs.ramCacheMiss) slot.tokens = [];
      for (const entry of ask.knobs.ramCacheMiss ? [] : entries) {
        const shared = commonPrefix(entry, ask.tokens);
        if (shared <= best || shared < RAM_KEEP * entry.length) continue;
        best = shared;
        slot.tokens = entry;
        slot.checkpoints = [];
      }
      entries = entries.filter((entry) => entry !== slot.tokens);
      if (own.length > 0) entries = [...entries, own].slice(-RAM_ENTRIES);
    },
    clear: () => {
      entries = [];
    },
  };
}

function freshSlot(id: number): Slot {
  const task = { id: 0, processed: 0, cached: 0, decoded: 0, limit: 0 };
  return { id, tokens: [], checkpoints: [], busy: false, lastUsed: 0, task, started: false };
}

function reuse(slot: Slot, ask: SlotAsk, cutting: "any" | "hybrid"): number {
  const most = ask.tokens.length - 1;
  const shared = Math.min(commonPrefix(slot.tokens, ask.tokens), most);
  const { cache } = ask.knobs;
  if (cache === "lost") return 0;
  if (typeof cache === "object") return Math.min(cache.foreign, most);
  const isExtension = shared === slot.tokens.length;
  if (cache === "true" && (cutting === "any" || isExtension)) return shared;
  return Math.max(0, ...slot.checkpoints.filter((at) => at <= shared && at <= most));
}
