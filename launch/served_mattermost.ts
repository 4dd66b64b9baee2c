// Which Mattermost server a rehearsal house talks to: the owner's own, named by the environment, or
// the double, with a person and a bot of its own and a plain client in the place of a phone.

export interface ServedMattermost {
  readonly name: string;
  /** gatewayd's configuration for it. */
  readonly config: string;
  /** Talks, or plays a conversation, in the owner's place about a file; null for a real server. */
  readonly phone: ((paper: string, how: "talk" | "play") => Promise<number>) | null;
  stop(): Promise<void>;
}

const configOf = (url: string, owner: string, token: string) =>
  `[mattermost]\nurl = "${url}"\nowner_id = "${owner}"\ntoken = ${token}\n`;

/** The server named by BOXMAKER_MATTERMOST_URL; throws when its owner or token is not named. */
export function givenMattermost(
  url: string,
  env: (name: string) => string | undefined,
): ServedMattermost {
  const owner = env("BOXMAKER_MATTERMOST_OWNER_ID") ?? "";
  const file = env("BOXMAKER_MATTERMOST_TOKEN_FILE");
  if (owner === "" || (file === undefined && env("BOXMAKER_SECRET_MATTERMOST") === undefined)) {
    throw new TypeError(
      "A Mattermost server needs BOXMAKER_MATTERMOST_OWNER_ID, and BOXMAKER_MATTERMOST_TOKEN_FILE " +
        "or BOXMAKER_SECRET_MATTERMOST",
    );
  }
  const token = file === undefined
    ? '{ env = "BOXMAKER_SECRET_MATTERMOST" }'
    : `{ file = "${file}" }`;
  const ca = env("BOXMAKER_MATTERMOST_CA_FILE");
  const config = configOf(url, owner, token) + (ca === undefined ? "" : `ca_file = "${ca}"\n`);
  return { name: url, config, phone: null, stop: () => Promise.resolve() };
}

/** The double on a free port, which ends with this process. Its bot's token is kept below `base`. */
export async function rehearsalMattermost(source: string, base: string): Promise<ServedMattermost> {
  const folder = `${source}/tests/doubles/mattermost`;
  const run = ["run", `--config=${source}/deno.json`, "--cached-only", "--frozen"];
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...run,
      "-A",
      `${folder}/main.ts`,
      "--folder",
      `${base}/mattermost`,
      "--until-stdin-ends",
    ],
    env: { DENO_NO_UPDATE_CHECK: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const said = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/^listening on \S+$/m.test(text)) {
    const { value, done } = await said.read();
    if (done) throw new Error("The Mattermost double ended before it listened");
    text += value;
  }
  const told = (word: string) => new RegExp(`^${word} (\\S+)$`, "m").exec(text)?.[1] ?? "";
  const url = told("listening on");
  const token = `${base}/mattermost-token`;
  Deno.writeTextFileSync(token, "boxmaker-token\n", { mode: 0o600 });
  return {
    name: `the Mattermost double at ${url}`,
    config: configOf(url, told("owner"), `{ file = "${token}" }`),
    phone: async (paper, how) => {
      const address = new URL(url).host;
      const play = how === "play" ? ["--rehearse"] : [];
      const about = ["--url", url, "--channel", told("channel"), "--paper", paper];
      const words = [`${folder}/client.ts`, ...about, ...play];
      const phone = new Deno.Command(Deno.execPath(), {
        args: [...run, `--allow-net=${address}`, ...words],
        env: { DENO_NO_UPDATE_CHECK: "1" },
      });
      return (await phone.spawn().status).code;
    },
    stop: async () => {
      await child.stdin.close();
      await child.status;
      await said.cancel();
    },
  };
}
