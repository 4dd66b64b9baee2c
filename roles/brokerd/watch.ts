// What becomes of calls after their request was answered, told in order to the one who watches.
// Numbers belong to one life of brokerd; whoever missed some is told so, and asks call by call.
import type { CallId, SessionId } from "../../shared/ids/ids.ts";
import type { ApprovalId } from "../../shared/ids/ids.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import type {
  ApprovalPending,
  CallReady,
  CallStarted,
  WatchStart,
} from "../../shared/wire/loop_broker.ts";

type Numbered = Said<typeof ApprovalPending | typeof CallReady | typeof CallStarted>;
export type WatchEvent = Numbered | Said<typeof WatchStart>;

type Place = { readonly session: SessionId; readonly call: CallId };

export interface Watch {
  started(place: Place): void;
  ready(place: Place): void;
  asked(place: Place & { approval: ApprovalId; expires_unix_ms: number }): void;
  /** Sends what follows number `after` of life `boot` until `signal` aborts; says why it ended. */
  follow(
    from: { readonly boot: string | null; readonly after: number },
    send: (event: WatchEvent) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<string>;
}

const KEPT = 1_024;

export function watchOf(boot: string): Watch {
  let kept: Numbered[] = [];
  let next = 0;
  let wake = Promise.withResolvers<void>();
  let newest = 0;
  const rouse = () => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  const post = (event: Numbered) => {
    kept = [...kept.slice(-KEPT + 1), event];
    next++;
    rouse();
  };
  return {
    started: (place) => post({ kind: "call_started", body: { seq: next, ...place } }),
    ready: (place) => post({ kind: "call_ready", body: { seq: next, ...place } }),
    asked: (place) => post({ kind: "approval_pending", body: { seq: next, ...place } }),
    async follow(from, send, signal) {
      const mine = ++newest;
      rouse();
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => aborted.resolve(), { once: true });
      if (signal.aborted) aborted.resolve();
      const isSameLife = from.boot === boot;
      let after = isSameLife ? Math.min(from.after, next - 1) : next - 1;
      const begin = (has_gap: boolean) =>
        send({ kind: "watch_start", body: { boot, seq: Math.max(0, after + 1), has_gap } });
      const skipTo = () => Math.max(after, (kept[0]?.body.seq ?? next) - 1);
      const hasGap = isSameLife ? skipTo() > after : from.boot !== null;
      after = skipTo();
      if (!await begin(hasGap)) return "the caller left";
      for (;;) {
        const waiting = wake.promise;
        if (skipTo() > after) {
          after = skipTo();
          if (!await begin(true)) return "the caller left";
        }
        for (const event of kept.filter((one) => one.body.seq > after)) {
          if (!await send(event)) return "the caller left";
          after = event.body.seq;
        }
        if (signal.aborted) return "the caller left";
        if (mine !== newest) return "another watch took over";
        if ((kept.at(-1)?.body.seq ?? after) > after) continue;
        await Promise.race([waiting, aborted.promise]);
      }
    },
  };
}
