// Guards: a rehearsal against the owner's own server needs all of it named, and its configuration is one
// that gatewayd takes.
import { deepStrictEqual, throws } from "node:assert";
import { parse } from "smol-toml";
import { GatewaydConfig } from "../shared/config/gatewayd.ts";
import { givenMattermost } from "./served_mattermost.ts";

const URL = "https://chat.example.org";
const OWNER = { BOXMAKER_MATTERMOST_OWNER_ID: "a".repeat(26) };

Deno.test("givenMattermost() refuses half a server, and takes the token from a file or a variable", () => {
  const given = (set: Record<string, string>) => givenMattermost(URL, (name) => set[name]);
  throws(() => given({}), /OWNER_ID/);
  throws(() => given(OWNER), /TOKEN_FILE/);
  throws(() => given({ BOXMAKER_MATTERMOST_TOKEN_FILE: "/t" }), /OWNER_ID/);
  const read = (set: Record<string, string>) =>
    GatewaydConfig.parse(parse(given({ ...OWNER, ...set }).config)).mattermost;
  const file = read({
    BOXMAKER_MATTERMOST_TOKEN_FILE: "/etc/token",
    BOXMAKER_MATTERMOST_CA_FILE: "/etc/ca.pem",
  });
  deepStrictEqual([file.token, file.ca_file], [{ file: "/etc/token" }, "/etc/ca.pem"]);
  const variable = read({ BOXMAKER_SECRET_MATTERMOST: "t" });
  deepStrictEqual(variable.token, { env: "BOXMAKER_SECRET_MATTERMOST" });
});
