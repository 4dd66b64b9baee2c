// What a session is for, by its id, and which slot of the model server that kind uses.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import type { SessionId } from "../../shared/ids/ids.ts";

export type SessionKind = "main" | "chat" | "job" | "run";

export function sessionKind(session: SessionId): SessionKind {
  if (session.startsWith("mm-")) return "main";
  if (session.startsWith("chat-")) return "chat";
  return session.startsWith("job-") ? "job" : "run";
}

/** The slot of a session: always the same one, as moving costs the whole cache. */
export function slotOf(session: SessionId, config: LoopdConfig): number {
  const kind = sessionKind(session);
  const { main, background } = config.inference.slots;
  return kind === "main" || kind === "chat" ? main : background;
}
