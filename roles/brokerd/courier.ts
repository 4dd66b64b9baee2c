// Carries questions and notices to gatewayd, as well as it can: nothing here decides anything, and the
// owner can always answer with bxctl. A question is posted until it is taken or closed.
import { type Clock, isoTime } from "../../shared/clock/clock.ts";
import { type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { Approval } from "./approvals.ts";
import type { Audit } from "./audit.ts";

/** What gatewayd is asked to do; each may fail, for example with `channel-unconfigured`. */
export interface Gateway {
  post(approval: Approval, lines: Uint8Array): Promise<Result<unknown>>;
  closed(approval: Approval): Promise<Result<unknown>>;
  notice(id: string, text: string): Promise<Result<unknown>>;
}

export interface Courier {
  ask(approval: Approval, lines: readonly string[]): void;
  closed(approval: Approval): void;
  notice(id: string, text: string): void;
  /** States the audit log's head to the owner once a day, until the courier is closed. */
  tellHeads(audit: Pick<Audit, "head">): void;
  close(): void;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const HOUR_MS = 3_600_000;

export function courierTo(gateway: Gateway, clock: Clock): Courier {
  const open = new Map<string, AbortController>();
  const over = new AbortController();

  async function carry(send: () => Promise<Result<unknown>>, signal: AbortSignal): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      if ((await send()).ok) return;
      await clock.sleep(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  // A day that was told already is taken and not shown twice: the notice's id names it.
  async function tell(audit: Pick<Audit, "head">): Promise<void> {
    let told = "";
    while (!over.signal.aborted) {
      await clock.sleep(HOUR_MS, over.signal);
      const today = isoTime(clock.nowUnixMs()).slice(0, 10);
      if (today === told || over.signal.aborted) continue;
      const { n, hash } = audit.head();
      const text = `Audit log: record ${n}, head ${hash}`;
      if ((await gateway.notice(`head-${today}`, text)).ok) told = today;
    }
  }

  return {
    ask(approval, lines) {
      const abort = new AbortController();
      open.set(approval.approval, abort);
      const bytes = encodeUtf8(lines.join("\n") + "\n");
      carry(() => gateway.post(approval, bytes), abort.signal);
    },
    closed(approval) {
      open.get(approval.approval)?.abort();
      open.delete(approval.approval);
      gateway.closed(approval);
    },
    notice: (id, text) => void gateway.notice(id, text),
    tellHeads: (audit) => void tell(audit),
    close() {
      over.abort();
      for (const abort of open.values()) abort.abort();
    },
  };
}
