// The configuration of gatewayd, `{home}/config/gatewayd.toml`. Without a server it starts and idles.
import { z } from "zod";
import { AbsolutePath, SecretSource } from "./fields.ts";

const ServerUrl = z.string().max(512).regex(
  /^https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[1-9][0-9]{0,4})?$/,
  "write https://name or https://name:port in lower case, without a path",
);
const EntityId = z.string().regex(/^[a-z0-9]{26}$/, "an id has 26 lower-case letters and digits");

const Mattermost = z.strictObject({
  url: ServerUrl.optional().describe("The Mattermost server; absent means no channel"),
  owner_id: EntityId.optional().describe("User id of the owner, the only one who is answered"),
  channels: z.array(EntityId).max(64).default([])
    .describe("Channel ids accepted beside direct messages"),
  attach_bytes: z.int().min(0).max(1_048_576).default(262_144)
    .describe("Largest attached text file that becomes part of a message"),
  ca_file: AbsolutePath.optional()
    .describe(
      "Certificates (PEM) of an authority of the owner's own, trusted beside the known ones",
    ),
  token: SecretSource.optional().describe("Where the bot's token is kept"),
});

const Approvals = z.strictObject({
  reactions: z.boolean().default(false)
    .describe("Whether the owner's reaction on a question's last post answers it"),
});

const Test = z.strictObject({
  timers_divided_by: z.int().min(1).max(1_000).default(1)
    .describe("For tests: shortens every interval; only for a server on 127.0.0.1"),
});

export const GatewaydConfig = z.strictObject({
  mattermost: Mattermost.prefault({}),
  approvals: Approvals.prefault({}),
  test: Test.prefault({}),
}).refine(
  ({ mattermost: { url }, test }) =>
    test.timers_divided_by === 1 || url?.startsWith("http://127.0.0.1:") === true,
  "timers_divided_by is for tests against a server on 127.0.0.1",
);
export type GatewaydConfig = z.output<typeof GatewaydConfig>;

/** The `host:port` of the configured server, or undefined without one. */
export function serverAddress(config: GatewaydConfig): string | undefined {
  if (config.mattermost.url === undefined) return undefined;
  const url = new URL(config.mattermost.url);
  const standard = url.protocol === "https:" ? "443" : "80";
  return `${url.hostname}:${url.port === "" ? standard : url.port}`;
}
