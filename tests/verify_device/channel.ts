// The checks of a Mattermost server and its bot: whether the server answers as recorded, whether the bot
// is what it is for and no more, whether the owner can be reached, and whether a post does what the
// channel relies on. Nothing is posted unless it is asked for, as the owner's phone would ring; what was
// posted is deleted again.
import type { DeviceCheck } from "./checks.ts";
import { type Answered, type Json, openServer, type Server } from "./mattermost_client.ts";
import type { ServerPlace } from "./mattermost_client.ts";

export interface Channel extends ServerPlace {
  readonly owner: string;
  /** Ids of the channels that are allowed beside the direct one. */
  readonly channels: readonly string[];
  /** Whether a post may be made and deleted in the direct channel. */
  readonly post: "make" | "leave";
  /** How long hello may take; 10 s. */
  readonly helloMs?: number;
}

type Verdict = DeviceCheck["verdict"];

function check(what: string, figure: string, limit: string, verdict: Verdict): DeviceCheck {
  return { check: `channel: ${what}`, figure: figure.slice(0, 120), limit, verdict };
}

function judged(what: string, figure: string, limit: string, isGood: boolean): DeviceCheck {
  return check(what, figure, limit, isGood ? "pass" : "fail");
}

/** Told only: right in one house and wrong in another. */
const told = (what: string, figure: string, limit: string) => check(what, figure, limit, "skip");

export async function channelChecks(channel: Channel): Promise<DeviceCheck[]> {
  await using server = openServer(channel);
  const ping = await server.ask("GET", "/system/ping");
  const reached = reach(channel, ping);
  if (reached.verdict === "fail") return [reached];
  const me = await server.ask("GET", "/users/me");
  const login = judged("the token is the bot's", me.error || "yes", "200", me.status === 200);
  if (me.status !== 200) return [reached, login];
  const bot = `${me.body.id}`;
  const pair = await server.ask("POST", "/channels/direct", [bot, channel.owner]);
  const dm = `${pair.body.id}`;
  const isDirect = pair.body.type !== undefined && `${pair.body.type}` === "D" &&
    `${pair.body.name}` === [bot, channel.owner].toSorted().join("__");
  return [
    reached,
    login,
    ...address(channel),
    ...rights(me.body),
    version(me),
    ...await settings(server),
    ...await owner(server, channel),
    judged("the direct channel with the owner", pair.error || dm, "type D", isDirect),
    ...await memberships(server, channel, bot),
    ...await listens(server, channel),
    limits(me),
    ...(isDirect ? await posts(server, channel, bot, dm) : []),
  ];
}

function reach({ url }: Channel, ping: Answered): DeviceCheck {
  const isGood = ping.status === 200 && `${ping.body.status}` === "OK";
  const isMoved = ping.status >= 300 && ping.status < 400;
  const why = isMoved
    ? `it redirects to ${ping.headers.get("location")}: write that address`
    : ping.error || `status ${ping.status}, but no Mattermost answer`;
  return judged("the server answers", isGood ? url : why, "ping OK", isGood);
}

function address({ url }: Channel): DeviceCheck[] {
  if (url.startsWith("https:")) return [judged("the way there", "https", "https", true)];
  const figure = "http: token and words travel as they are";
  return [told("the way there", figure, "only on one machine or tailnet")];
}

/** The bot is a bot, and may do no more than post and read. */
function rights(me: Json): DeviceCheck[] {
  const roles = `${me.roles ?? ""}`.split(/\s+/);
  const high = roles.filter((role) => /admin|manager/.test(role));
  const wide = roles.filter((role) => /^system_post_all|^post:/.test(role));
  return [
    judged("the account is a bot", `${me.is_bot}`, "true", `${me.is_bot}` === "true"),
    judged("it rules nothing", high.join() || "no such role", "none", high.length === 0),
    judged("it posts only where it is a member", wide.join() || "yes", "yes", wide.length === 0),
  ];
}

function version(me: Answered): DeviceCheck {
  const said = me.headers.get("x-version-id") ?? "";
  const [major = 0, minor = 0] = said.split(".").map(Number);
  const isKnown = major > 10 || (major === 10 && minor >= 11);
  return judged("version", said.split(".").slice(0, 3).join("."), "10.11 or later", isKnown);
}

async function settings(server: Server): Promise<DeviceCheck[]> {
  const config = await server.ask("GET", "/config/client?format=old");
  const { MaxPostSize, PostEditTimeLimit, EnableLinkPreviews } = config.body;
  if (config.status !== 200) {
    return [judged("its settings can be read", config.error, "200", false)];
  }
  const size = Number(MaxPostSize);
  const edits = `${PostEditTimeLimit}`;
  return [
    judged("MaxPostSize", `${MaxPostSize}`, "4000 or more", size >= 4_000),
    judged(
      "PostEditTimeLimit",
      edits === "-1" ? edits : `${edits} s: later answers leave their draft behind`,
      "-1",
      edits === "-1",
    ),
    told("EnableLinkPreviews", `${EnableLinkPreviews}`, "false is the cautious one"),
  ];
}

async function owner(server: Server, { owner }: Channel): Promise<DeviceCheck[]> {
  const found = await server.ask("GET", `/users/${owner}`);
  const { username, is_bot, delete_at } = found.body;
  const isPerson = found.status === 200 && `${is_bot ?? false}` === "false";
  const isActive = `${delete_at ?? 0}` === "0";
  return [
    judged(
      "owner_id is a person's",
      found.error || `@${username}${isPerson ? "" : ", a bot"}`,
      "an active one",
      isPerson && isActive,
    ),
  ];
}

async function memberships(
  server: Server,
  { channels }: Channel,
  bot: string,
): Promise<DeviceCheck[]> {
  const checks: DeviceCheck[] = [];
  for (const id of channels) {
    const member = await server.ask("GET", `/channels/${id}/members/${bot}`);
    const isIn = member.status === 200;
    checks.push(judged(`the bot is in ${id}`, member.error || "yes", "a member", isIn));
  }
  return checks;
}

/** The events' connection: hello by the header alone, an answer to ping, and the server's clock. */
async function listens(server: Server, { helloMs = 10_000 }: Channel): Promise<DeviceCheck[]> {
  const socket = server.listen();
  try {
    const began = performance.now();
    const hello = await socket.find((one) => `${one.event}` === "hello", helloMs);
    const tookMs = Math.round(performance.now() - began);
    const figure = hello === null ? "no hello" : `${tookMs} ms`;
    const heard = judged("events: hello", figure, `${helloMs} ms`, hello !== null);
    if (hello === null) return [heard];
    socket.send({ seq: 1, action: "ping" });
    const pong = await socket.find((one) => `${one.seq_reply}` === "1", helloMs);
    const status = pong === null ? "no answer" : `${pong.status}`;
    const time = Number(pong?.data?.server_time);
    const skewS = Number.isFinite(time) ? Math.round((time - Date.now()) / 1_000) : null;
    return [
      heard,
      judged("events: ping", status, "OK", status === "OK"),
      skewS === null
        ? told("clocks", "the server does not tell its time", "within 60 s")
        : judged("clocks", `${skewS} s apart`, "within 60 s", Math.abs(skewS) < 60),
    ];
  } finally {
    await socket.close();
  }
}

function limits(me: Answered): DeviceCheck {
  const limit = me.headers.get("x-ratelimit-limit");
  if (limit === null) return told("rate limit", "none", "Boxmaker asks at most 8 times a second");
  const left = me.headers.get("x-ratelimit-remaining");
  const isRoomy = Number(limit) >= 20;
  return judged("rate limit", `burst ${limit}, ${left} left`, "a burst of 20", isRoomy);
}

const WORDS = "A check of the channel; it is deleted in a moment.";

/** One post of the bot's with the marks that the channel relies on, through its whole life. */
async function posts(
  server: Server,
  { post, helloMs = 10_000 }: Channel,
  bot: string,
  dm: string,
): Promise<DeviceCheck[]> {
  if (post === "leave") return [told("a post", "not made: the owner would see it", "--post")];
  const socket = server.listen();
  await socket.find((one) => `${one.event}` === "hello", helloMs);
  const key = crypto.randomUUID();
  const wish = {
    channel_id: dm,
    message: WORDS,
    root_id: "",
    pending_post_id: `${bot}:${key}`,
    props: { unsafe_links: "true", boxmaker_out: key },
  };
  const made = await server.ask("POST", "/posts?set_online=false", wish);
  const id = `${made.body.id}`;
  const isMade = made.status === 201;
  const first = judged("a post", made.error || "made", "201", isMade);
  if (!isMade) {
    await socket.close();
    return [first];
  }
  const checks = [first, ...await lifeOf(server, { id, key, bot, wish })];
  const echo = await socket.find(
    (one) => `${one.event}` === "posted" && `${one.data?.post}`.includes(key),
    helloMs,
  );
  await socket.close();
  const isEchoed = echo !== null;
  return [...checks, judged("its event", isEchoed ? "came" : "never came", "posted", isEchoed)];
}

interface Made {
  readonly id: string;
  readonly key: string;
  readonly bot: string;
  readonly wish: unknown;
}

async function lifeOf(server: Server, { id, key, bot, wish }: Made): Promise<DeviceCheck[]> {
  const read = await server.ask("GET", `/posts/${id}`);
  const props = read.body.props ?? {};
  const isKept = `${props.unsafe_links}` === "true" && `${props.boxmaker_out}` === key;
  const isWhole = `${read.body.message}` === WORDS;
  const again = await server.ask("POST", "/posts?set_online=false", wish);
  const isSame = `${again.body.id}` === id;
  const patch = { message: `${WORDS} Edited.`, props };
  const edited = await server.ask("PUT", `/posts/${id}/patch`, patch);
  const isEdited = edited.status === 200 && `${edited.body.id}` === id;
  const reaction = { user_id: bot, post_id: id, emoji_name: "hourglass_flowing_sand" };
  const marked = await server.ask("POST", "/reactions", reaction);
  const gone = await server.ask("DELETE", `/posts/${id}`);
  if (!isSame && again.status === 201) await server.ask("DELETE", `/posts/${again.body.id}`);
  const after = await server.ask("GET", `/posts/${id}`);
  const isGone = gone.status === 200 && after.status === 404;
  return [
    judged("read back", isWhole ? "word for word" : "other words", "the same", isWhole),
    judged("its marks", isKept ? "kept" : "lost", "unsafe_links, boxmaker_out", isKept),
    judged("the same pending id again", isSame ? "the same post" : "another", "one post", isSame),
    judged("edited", edited.error || "yes", "200", isEdited),
    judged("a reaction", marked.error || "yes", "200 or 201", marked.status < 300),
    judged("deleted", gone.error || (isGone ? "gone" : "still there"), "404 after it", isGone),
  ];
}
