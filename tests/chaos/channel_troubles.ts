// Everything that goes wrong between a phone and the model, one thing after another: lines that break
// in every way, a server that is deaf, limits, restarts, loses answers after it has carried out what was
// asked, and kills of both roles.
import type { RestFault } from "../doubles/mattermost/knobs.ts";
import { type ChannelHouse, pause } from "./channel_house.ts";

const LOSSES: readonly RestFault[] = [
  { method: "POST", path: "^/posts$", action: { kind: "lost", isCommitted: true } },
  { method: "POST", path: "^/posts$", action: { kind: "lost", isCommitted: false } },
  { method: "PUT", path: "/patch$", action: { kind: "lost", isCommitted: true } },
  { method: "POST", path: "^/posts$", action: { kind: "proxy", status: 502, isCommitted: true } },
  { times: 4, action: { kind: "proxy", status: 502, isCommitted: false } },
  { times: 2, action: { kind: "limited", retryAfterS: 1, resetS: 1 } },
  { action: { kind: "limited", retryAfterS: null, resetS: 2 } },
  { method: "POST", path: "^/posts$", action: { kind: "truncated" } },
  { path: "/posts", action: { kind: "wrong-type" } },
  { path: "^/users/me$", action: { kind: "empty", status: 504, isCommitted: false } },
  {
    method: "POST",
    path: "^/posts$",
    action: { kind: "refuse", status: 500, id: "api.post.deduplicate_create_post.pending" },
  },
  { path: "/posts", action: { kind: "slow", ms: 300 } },
];
const DROPS = ["fin", "rst", "half-open", "empty-close", "deaf", "oversize-close"] as const;

/** The name of a loss in the table of what went wrong. */
function nameOf({ action }: RestFault): string {
  const { kind } = action;
  if (kind === "limited") return "429";
  if (kind === "proxy" || kind === "refuse" || kind === "empty") return `${action.status}`;
  return kind === "lost" && action.isCommitted ? "committed, then lost" : kind;
}

/** Troubles for each answer: more, and on a slow machine no request would ever be left alone. */
const PER_ANSWER = 0.6;
const AT_FIRST = 10;

/** Goes on until `isOver`; tells `note` of each thing done. */
export async function makeTrouble(
  house: ChannelHouse,
  roll: (sides: number) => number,
  note: (what: string) => void,
  isOver: () => boolean,
): Promise<void> {
  for (let made = 0; !isOver();) {
    await pause(40 + roll(260));
    if (isOver()) return;
    if (made > AT_FIRST + PER_ANSWER * house.answered().size) continue;
    const what = await oneTrouble(house, roll);
    if (what === "nothing") continue;
    made++;
    note(what);
  }
}

async function oneTrouble(house: ChannelHouse, roll: (sides: number) => number): Promise<string> {
  const double = house.double();
  const kind = roll(18);
  if (kind < 6) {
    const how = DROPS[kind] ?? "fin";
    double.drop(how);
    return how;
  }
  switch (kind) {
    case 12:
      double.skipSeq();
      return "gap";
    case 13:
      double.set({ helloWithheld: true });
      double.drop("rst");
      await pause(300);
      house.double().set({ helloWithheld: false });
      return "no hello";
    case 14:
      double.bounce();
      return "bounce";
    case 15:
      if (roll(2) === 0) return "nothing";
      await house.restartServer(100 + roll(200));
      return "restart";
    case 16:
    case 17: {
      if (roll(2) === 0) return "nothing";
      house.roles[kind === 16 ? 0 : 1].kill();
      return kind === 16 ? "kill gatewayd" : "kill loopd";
    }
    default: {
      const fault = LOSSES[roll(LOSSES.length)];
      if (fault === undefined) return "nothing";
      double.fault(fault);
      return nameOf(fault);
    }
  }
}
