// Guards the double's life as a process: killed at any moment and started again it is the same server,
// and its operations are reached from outside.
import { ok as assert, strictEqual } from "node:assert";
import { controlOf } from "./control.ts";
import { furnish } from "./rig.ts";
import { startMattermostDouble } from "./double.ts";

const MAIN = decodeURIComponent(new URL("./main.ts", import.meta.url).pathname);

interface Running {
  readonly url: string;
  kill(): Promise<void>;
}

async function start(folder: string, port: number): Promise<Running> {
  const args = ["run", "-A", "--no-check", MAIN, "--folder", folder, "--port", `${port}`];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args, "--token", "the-token"],
    stdout: "piped",
    stderr: "inherit",
    stdin: "null",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("listening on")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The double ended early: ${text}`);
    text += value;
  }
  return {
    url: /listening on (\S+)/.exec(text)?.[1] ?? "",
    kill: async () => {
      child.kill("SIGKILL");
      await child.status;
      await reader.cancel();
    },
  };
}

Deno.test("main.ts killed and started again keeps every post, record and token", async () => {
  const folder = await Deno.makeTempDir({ prefix: "boxmaker-mattermost-" });
  const first = await start(folder, 0);
  const api = controlOf(first.url);
  const owner = await api.userNamed("owner");
  const bot = await api.userNamed("boxmaker");
  assert(owner !== null && bot !== null);
  const dm = await api.directChannel(bot.id, owner.id);
  const post = await api.postAs(owner.id, { channel_id: dm.id, message: "remember" });
  const me = await fetch(`${first.url}/api/v4/users/me`, {
    headers: { authorization: "Bearer the-token" },
  });
  strictEqual((await me.json()).id, bot.id);
  await first.kill();
  // What a kill leaves of a line half written is dropped, and nothing else.
  await Deno.writeTextFile(`${folder}/state.jsonl`, '["posts","x",{"id":', { append: true });

  const second = await start(folder, Number(new URL(first.url).port));
  strictEqual(second.url, first.url);
  const found = await api.postsIn(dm.id);
  strictEqual(found.map((one) => one.id).join(), post.id);
  const later = await api.postAs(owner.id, { channel_id: dm.id, message: "more" });
  assert(later.create_at > post.create_at);
  const paths = (await api.traffic()).map((one) => one.kind === "request" ? one.path : one.what);
  strictEqual(paths[0], "/users/me");
  await second.kill();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("controlOf() reaches every operation of the double", async () => {
  const double = await startMattermostDouble();
  try {
    const { owner, dm } = furnish(double);
    const api = controlOf(double.url);
    const own = Object.entries(double).filter(([, value]) => typeof value === "function")
      .map(([name]) => name).filter((name) => name !== "stop");
    strictEqual(Object.keys(api).toSorted().join(), own.toSorted().join());
    await api.set({ maxPostSize: 3 });
    const refused = await api.postAs(owner.id, { channel_id: dm, message: "long" })
      .then(() => "made", (thrown) => `${thrown}`);
    assert(refused.includes("refused postAs"));
    const unknown = await fetch(`${double.url}/double/nothing`, { method: "POST", body: "[]" });
    strictEqual(unknown.status, 404);
    await unknown.body?.cancel();
  } finally {
    await double.stop();
  }
});
