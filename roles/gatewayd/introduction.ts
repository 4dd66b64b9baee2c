// What is settled before any event is listened to: that the token is the bot's, that the bot may be
// what it is for, where the owner is, and what the server allows.
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import type { Health } from "./health.ts";
import { Anything, Channel, ServerConfig, User } from "./mattermost.ts";
import type { Answer, Rest } from "./rest.ts";
import { directName, type Place } from "./trust.ts";

const DEFAULT_POINTS = 4_000;
/** Room for what the server may count otherwise. */
const SPARE_POINTS = 64;

export interface Introduced {
  readonly place: Place;
  readonly direct: string;
}

function failure(what: string, answer: Exclude<Answer<unknown>, { is: "ok" }>): Result<never> {
  if (answer.is === "unknown") return err("channel-unreachable", `${what}: ${answer.detail}`);
  const code = answer.status === 401 ? "channel-token-refused" : "channel-misconfigured";
  return err(code, `${what}: ${answer.detail}`);
}

/** The bot's own id. Fails when the token is nobody's, or somebody's who should not be the bot. */
export async function whoAmI(rest: Rest): Promise<Result<string>> {
  const me = await rest.ask({ method: "GET", path: "/users/me" }, User);
  if (me.is !== "ok") return failure("The bot's account", me);
  const { id, is_bot, delete_at, roles } = me.value;
  if (!is_bot) return err("channel-misconfigured", "The token is not a bot account's");
  if (delete_at !== 0) return err("channel-misconfigured", "The bot account is deactivated");
  if (roles.split(/\s+/).includes("system_admin")) {
    return err("channel-misconfigured", "The bot is a system administrator; it must not be");
  }
  return ok(id);
}

/** Where the owner is heard. A channel that the bot is no member of is left out, and said. */
export async function introduce(
  rest: Rest,
  config: GatewaydConfig["mattermost"],
  health: Health,
): Promise<Result<Introduced>> {
  const self = await whoAmI(rest);
  if (!self.ok) return self;
  const owner = config.owner_id ?? "";
  const pair = [self.value, owner];
  const direct = await rest.ask({ method: "POST", path: "/channels/direct", json: pair }, Channel);
  if (direct.is !== "ok") return failure("The direct channel with the owner", direct);
  const { id, type, name } = direct.value;
  if (type !== "D" || name !== directName(self.value, owner)) {
    return err("channel-misconfigured", "The server gave another channel than the owner's");
  }
  const channels = [id];
  for (const channel of config.channels) {
    const path = `/channels/${channel}/members/${self.value}`;
    const member = await rest.ask({ method: "GET", path }, Anything);
    if (member.is === "ok") channels.push(channel);
    else if (member.is === "unknown") return failure(`Channel ${channel}`, member);
    else health.set("channel-misconfigured", `No member of ${channel}: ${member.detail}`);
  }
  return ok({ place: { self: self.value, owner, channels }, direct: id });
}

/** Code points that one post may have; what the server does not say is taken to be little. */
export async function postLimit(rest: Rest): Promise<number> {
  const config = await rest.ask({ method: "GET", path: "/config/client?format=old" }, ServerConfig);
  const said = config.is === "ok" ? Number.parseInt(config.value.MaxPostSize, 10) : NaN;
  const limit = Number.isFinite(said) && said >= 500 ? said : DEFAULT_POINTS;
  return limit - SPARE_POINTS;
}
