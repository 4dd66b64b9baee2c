// Guards: every check of a Mattermost server says no when its server, its bot or its settings are not as
// the channel needs them, and yes to all when they are.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import type { Knobs, RestFault } from "../doubles/mattermost/knobs.ts";
import { type Rig, startRig } from "../doubles/mattermost/rig.ts";
import { type Channel, channelChecks } from "./channel.ts";
import type { DeviceCheck } from "./checks.ts";
import { findChannel } from "./find_channel.ts";

const TLS = new URL("../doubles/mattermost/tls/", import.meta.url);
const pem = (name: string) => Deno.readTextFile(new URL(name, TLS));

const channelOf = ({ double, owner, bot }: Rig, more: Partial<Channel> = {}): Channel => ({
  url: double.url,
  token: bot.token,
  certificates: null,
  owner: owner.id,
  channels: [],
  post: "make",
  helloMs: 400,
  ...more,
});

const failed = (checks: readonly DeviceCheck[]) =>
  checks.filter((one) => one.verdict === "fail").map((one) => one.check.replace("channel: ", ""));

interface Fault {
  readonly says: string;
  readonly knobs?: Partial<Knobs>;
  readonly fault?: RestFault;
  readonly spoil?: (rig: Rig) => Partial<Channel> | void;
}

const ONE_POST = "^/posts/[a-z0-9]{26}$";
const ID = "x".repeat(26);
const FAULTS: readonly Fault[] = [
  { says: "the server answers", spoil: () => ({ url: "http://127.0.0.1:9" }) },
  {
    says: "the server answers",
    fault: { path: "ping", action: { kind: "redirect", location: "https://other.example/" } },
  },
  {
    says: "the server answers",
    fault: { path: "ping", action: { kind: "proxy", status: 502, isCommitted: false } },
  },
  { says: "the token is the bot's", spoil: () => ({ token: "wrong" }) },
  {
    says: "the token is the bot's",
    spoil: ({ double, bot }) => double.setDisabled(bot.id, "disabled"),
  },
  {
    says: "the account is a bot",
    spoil: ({ owner, bot }) => ({ token: owner.token, owner: bot.id }),
  },
  {
    says: "it rules nothing",
    spoil: ({ double }) => {
      const boss = double.addUser({
        username: "boss",
        isBot: true,
        roles: "system_user system_admin",
      });
      return { token: double.addToken(boss.id) };
    },
  },
  {
    says: "it posts only where it is a member",
    spoil: ({ double }) => {
      const loud = double.addUser({ username: "loud", isBot: true, roles: "system_user post:all" });
      return { token: double.addToken(loud.id) };
    },
  },
  { says: "version", knobs: { version: "9.5.2" } },
  { says: "MaxPostSize", knobs: { maxPostSize: 1_000 } },
  { says: "PostEditTimeLimit", knobs: { postEditTimeLimitS: 300 } },
  {
    says: "its settings can be read",
    fault: { path: "config", action: { kind: "refuse", status: 403, id: "x" } },
  },
  { says: "owner_id is a person's", spoil: () => ({ owner: ID }) },
  {
    says: "owner_id is a person's",
    spoil: ({ double, owner }) => double.setDisabled(owner.id, "disabled"),
  },
  { says: "the direct channel with the owner", spoil: () => ({ owner: ID }) },
  { says: `the bot is in ${ID}`, spoil: () => ({ channels: [ID] }) },
  { says: "events: hello", knobs: { helloWithheld: true } },
  { says: "events: ping", knobs: { pingReplyWithheld: true } },
  { says: "clocks", knobs: { aheadMs: 300_000 } },
  { says: "clocks", knobs: { aheadMs: -300_000 } },
  { says: "rate limit", knobs: { rateLimit: { perSecond: 100, burst: 15 } } },
  { says: "a post", knobs: { dmRestricted: true } },
  {
    says: "edited",
    fault: { path: "/patch$", action: { kind: "refuse", status: 403, id: "no_edit" } },
  },
  { says: "a reaction", knobs: { reactionLimit: 0 } },
  {
    says: "deleted",
    fault: { method: "DELETE", path: "^/posts/", action: { kind: "refuse", status: 403, id: "x" } },
  },
  { says: "read back", fault: { path: ONE_POST, action: { kind: "truncated" } } },
  {
    says: "its marks",
    fault: { path: ONE_POST, action: { kind: "refuse", status: 404, id: "x" } },
  },
  {
    says: "the same pending id again",
    fault: { path: "^/posts$", skip: 1, action: { kind: "refuse", status: 500, id: "x" } },
  },
];

Deno.test("channelChecks() each fault of a server, a bot or a setting is a check that says no", async () => {
  for (const { says, knobs, fault, spoil } of FAULTS) {
    const rig = await startRig({ ...(knobs === undefined ? {} : { knobs }) });
    try {
      if (fault !== undefined) rig.double.fault(fault);
      const checks = await channelChecks(channelOf(rig, spoil?.(rig) ?? {}));
      const no = failed(checks);
      assert(no.includes(says), `${says} is not among: ${no.join("; ")}`);
    } finally {
      await rig.double.stop();
    }
  }
});

Deno.test("channelChecks() passes a server as it should be, and leaves nothing behind", async () => {
  for (const profile of ["v10.11", "v11", "v12"] as const) {
    const rig = await startRig({ knobs: { profile } });
    try {
      const checks = await channelChecks(channelOf(rig));
      deepStrictEqual(failed(checks), []);
      assert(checks.filter((one) => one.verdict === "pass").length >= 18);
      deepStrictEqual(rig.double.postsIn(rig.dm), []);
    } finally {
      await rig.double.stop();
    }
  }
});

Deno.test("channelChecks() posts nothing unless it is asked to", async () => {
  const rig = await startRig();
  try {
    const checks = await channelChecks(channelOf(rig, { post: "leave" }));
    strictEqual(checks.find((one) => one.check === "channel: a post")?.verdict, "skip");
    const posts = rig.double.traffic().filter((one) =>
      one.kind === "request" && /^\/(?:posts|reactions)/.test(one.path)
    );
    deepStrictEqual(posts, []);
  } finally {
    await rig.double.stop();
  }
});

Deno.test("channelChecks() a server that only the owner's authority vouches for needs its certificate", async () => {
  const tls = { key: await pem("key.pem"), cert: await pem("cert.pem") };
  const rig = await startRig({ tls });
  try {
    const [only, ...rest] = await channelChecks(channelOf(rig));
    match(only?.figure ?? "", /certificate/);
    deepStrictEqual(rest, []);
    const certificates = await pem("ca.pem");
    deepStrictEqual(failed(await channelChecks(channelOf(rig, { certificates }))), []);
  } finally {
    await rig.double.stop();
  }
});

Deno.test("findChannel() takes half a configuration for a fault and none for none", () => {
  const env = (set: Record<string, string>) => findChannel((name) => set[name]);
  strictEqual(env({}), null);
  const url = "https://chat.example.org";
  strictEqual(env({ BOXMAKER_MATTERMOST_URL: url })?.ok, false);
  const owner = { BOXMAKER_MATTERMOST_URL: url, BOXMAKER_MATTERMOST_OWNER_ID: ID };
  strictEqual(env(owner)?.ok, false);
  const whole = { ...owner, BOXMAKER_SECRET_MATTERMOST: "t" };
  strictEqual(env(whole)?.ok, true);
  const file = (name: string) => decodeURIComponent(new URL(name, TLS).pathname);
  strictEqual(env({ ...whole, BOXMAKER_MATTERMOST_CA_FILE: file("ca.pem") })?.ok, true);
  for (const name of ["key.pem", "none.pem"]) {
    strictEqual(env({ ...whole, BOXMAKER_MATTERMOST_CA_FILE: file(name) })?.ok, false, name);
  }
});
