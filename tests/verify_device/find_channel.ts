// Which Mattermost server is checked, as whom: the environment's, else what {home}/config says, with the
// token from where that configuration keeps it.
import { readConfig } from "../../shared/boot/boot.ts";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { readText } from "../../shared/disk/durable.ts";
import { makeLog } from "../../shared/log/log.ts";
import { configFile } from "../../shared/permissions/places.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { readSecret } from "../../shared/secrets/secret_store.ts";
import type { Channel } from "./channel.ts";

export const CHANNEL_MISSING =
  "no server: set BOXMAKER_MATTERMOST_URL, _OWNER_ID and _TOKEN_FILE, " +
  "or BOXMAKER_HOME with a gatewayd.toml";

type Named = Omit<Channel, "post">;
type Mattermost = GatewaydConfig["mattermost"];

/** The channel that is configured; null when none is, a failure when it is only half. */
export function findChannel(env: (name: string) => string | undefined): Result<Named> | null {
  const url = env("BOXMAKER_MATTERMOST_URL") ?? "";
  if (url !== "") {
    const file = env("BOXMAKER_MATTERMOST_TOKEN_FILE");
    const mattermost = {
      url,
      owner_id: env("BOXMAKER_MATTERMOST_OWNER_ID") ?? "",
      token: file === undefined ? { env: "BOXMAKER_SECRET_MATTERMOST" } : { file },
      ca_file: env("BOXMAKER_MATTERMOST_CA_FILE"),
    };
    const config = GatewaydConfig.safeParse({ mattermost });
    return config.success
      ? named(config.data.mattermost, env)
      : err("config-invalid", config.error.issues.map((one) => one.message).join("; "));
  }
  const home = env("BOXMAKER_HOME") ?? "";
  if (home === "") return null;
  const config = readConfig(GatewaydConfig, denoDisk, configFile(home, "gatewayd"));
  if (!config.ok) return config;
  return config.value.mattermost.url === undefined ? null : named(config.value.mattermost, env);
}

function named(mattermost: Mattermost, env: (name: string) => string | undefined): Result<Named> {
  const { url, owner_id, token, ca_file, channels } = mattermost;
  if (url === undefined || owner_id === undefined || token === undefined) {
    return err("config-invalid", "[mattermost] url needs owner_id and token beside it");
  }
  const uid = "file" in token ? denoDisk.stat(token.file).ownerUid : 0;
  const log = makeLog("verify-device", systemClock, () => {});
  const secret = readSecret({ disk: denoDisk, env, ownerUid: uid, log }, "mattermost.token", token);
  if (!secret.ok) return secret;
  const certificates = ca_file === undefined ? ok(null) : readText(denoDisk, ca_file, 1_048_576);
  if (!certificates.ok) return certificates;
  if (certificates.value?.includes("-----BEGIN CERTIFICATE-----") === false) {
    return err("config-invalid", "ca_file holds no certificate in PEM form");
  }
  return ok({
    url,
    owner: owner_id,
    token: secret.value.reveal(),
    certificates: certificates.value,
    channels,
  });
}
