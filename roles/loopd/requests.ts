// What loopd answers, as one table a socket. The channel's socket takes turns of its own threads and
// sees only what it may deliver; the owner's socket sees everything.
import type { SessionId } from "../../shared/ids/ids.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { Baseline } from "../../shared/session_log/records.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import {
  CACHE_REPORT,
  LOOP_STATUS,
  LOOP_WATCH,
  OUTBOX_ACK,
  OUTBOX_FETCH,
  PROMPT_BILL,
  SESSION_LOG,
  SESSION_VERIFY,
  SESSIONS_LIST,
  TURN_CANCEL,
  TURN_SUBMIT,
} from "../../shared/wire/loop.ts";
import { outboxItem } from "./hub.ts";
import type { OutboxEntry } from "./outbox.ts";
import { promptBill } from "./prompt_bill.ts";
import { verifySession } from "./session_files.ts";
import { type SessionKind, sessionKind } from "./session_kind.ts";
import { cacheReport, epochLog, listSessions } from "./session_reports.ts";
import type { Sessions } from "./sessions.ts";
import type { House } from "./turn.ts";

export type LoopStatus = BodyOf<typeof LOOP_STATUS["replies"][number]>;

export interface Served {
  readonly house: House;
  readonly sessions: Sessions;
  /** The folder of all sessions. */
  readonly root: string;
  readonly status: () => Promise<LoopStatus>;
  readonly baseline: () => Promise<Baseline>;
}

type Allowed = (session: SessionId) => boolean;

function kinds(...allowed: readonly SessionKind[]): Allowed {
  return (session) => allowed.includes(sessionKind(session));
}

/** The table of gateway-loop/loop. */
export function gatewayRoutes(served: Served): Route[] {
  return sharedRoutes(served, kinds("main"), kinds("main", "job", "run"));
}

/** The table of owner-loop/admin. */
export function ownerRoutes(served: Served): Route[] {
  const { house, root, sessions } = served;
  const { disk } = house.ports;
  return [
    ...sharedRoutes(served, kinds("chat", "main"), () => true),
    on(SESSIONS_LIST, (body) => {
      const items = listSessions(disk, root, body, sessions.isBusy);
      return items.ok ? ok({ kind: "sessions", body: { items: items.value } }) : items;
    }),
    on(SESSION_LOG, async (body, io) => {
      const log = epochLog(disk, root, body.session, body.epoch);
      if (!log.ok) return log;
      await io.chunk(log.value.bytes);
      const { epoch } = log.value;
      return ok({ kind: "session_log_end", body: { session: body.session, epoch } });
    }),
    on(SESSION_VERIFY, ({ session }) => {
      const found = verifySession(disk, `${root}/${session}`);
      if (!found.ok) return found;
      const { isWhole, records, finding } = found.value;
      const body = { session, is_whole: isWhole, records, finding: finding.slice(0, 1_000) };
      return ok({ kind: "session_verified", body });
    }),
    on(CACHE_REPORT, ({ session, limit }) => {
      const found = cacheReport(disk, root, session, limit);
      return found.ok ? ok({ kind: "cache_uses", body: found.value }) : found;
    }),
    on(PROMPT_BILL, async () => {
      const bill = await promptBill(house.model, house.config, await served.baseline());
      return ok({ kind: "prompt_bill", body: bill });
    }),
  ];
}

function sharedRoutes(served: Served, maySpeak: Allowed, maySee: Allowed): Route[] {
  const { sessions, house: { outbox, hub } } = served;
  const seen = (n: number): Result<OutboxEntry> => {
    const entry = outbox.get(n);
    return entry !== undefined && maySee(entry.session)
      ? ok(entry)
      : err("not-found", `No outbox item ${n}`);
  };
  return [
    on(TURN_SUBMIT, async ({ session, message_id, label }, io) => {
      if (!maySpeak(session)) return err("request-invalid", `No turn of ${session} starts here`);
      const text = decodeUtf8(io.upload);
      if (!text.ok) return err("request-invalid", text.detail);
      if (text.value.trim() === "") return err("request-invalid", "The message is empty");
      const message = { session, messageId: message_id, text: text.value, label };
      const done = await sessions.submit(message);
      if (!done.ok) return done;
      const { turn, isDuplicate } = done.value;
      return ok({ kind: "turn_accepted", body: { session, turn, is_duplicate: isDuplicate } });
    }),
    on(TURN_CANCEL, ({ session }) => {
      if (!maySpeak(session)) return err("request-invalid", `No turn of ${session} ends here`);
      return ok({ kind: "turn_cancelled", body: { turn: sessions.cancel(session) } });
    }),
    on(LOOP_WATCH, async ({ after }, io) => {
      const events = hub.watch(io.signal);
      const next = events.next();
      for (const entry of outbox.after(after)) {
        if (maySee(entry.session)) await io.event(outboxItem(entry));
      }
      for (let event = await next;; event = await events.next()) {
        if (event.done === true) {
          const why = event.value === "gone" ? "The watch was closed" : "The watcher fell behind";
          return ok({ kind: "watch_end", body: { why } });
        }
        if (maySee(event.value.body.session)) await io.event(event.value);
      }
    }),
    on(OUTBOX_FETCH, async ({ n }, io) => {
      const entry = seen(n);
      if (!entry.ok) return entry;
      await io.chunk(encodeUtf8(entry.value.text));
      return ok(outboxItem(entry.value));
    }),
    on(OUTBOX_ACK, ({ n }) => {
      const entry = outbox.get(n);
      if (entry !== undefined && !maySee(entry.session)) return err("not-found", `No item ${n}`);
      const done = outbox.ack(n);
      return done.ok ? ok({ kind: "ok", body: {} }) : done;
    }),
    on(LOOP_STATUS, async () => ok({ kind: "loop_status", body: await served.status() })),
  ];
}
