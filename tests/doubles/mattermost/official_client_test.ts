// Guards the double's faithfulness from outside: the official client, unchanged, signs in, posts,
// edits, reacts, uploads and lists, and hears about it over its own WebSocket, which it recovers
// after a drop, a gap, a silence and a restart.
import mattermost from "@mattermost/client";
import { ok as assert, rejects, strictEqual } from "node:assert";
import type { MattermostOptions } from "./double.ts";
import { isRecord } from "./exchange.ts";
import { type Rig, startRig } from "./rig.ts";

const { Client4, ClientError, WebSocketClient } = mattermost;

async function withRig(options: MattermostOptions, run: (rig: Rig) => Promise<void>) {
  const rig = await startRig(options);
  const log = console.log;
  console.log = () => {}; // The client tells its whole life to the console.
  try {
    await run(rig);
  } finally {
    console.log = log;
    await rig.double.stop();
  }
}

function restClient(rig: Rig, token = rig.bot.token) {
  const client = new Client4();
  client.setUrl(rig.double.url);
  client.setToken(token);
  return client;
}

const idOf = (error: unknown) =>
  error instanceof ClientError ? `${error.status_code} ${error.server_error_id}` : `${error}`;
const failure = (work: Promise<unknown>) => work.then(() => "worked", idOf);

Deno.test("Client4 reads the server's refusals as the server means them", async () => {
  await withRig({}, async (rig) => {
    const { double, dm, bot } = rig;
    const expired = "401 api.context.session_expired.app_error";
    strictEqual(await failure(restClient(rig, "wrong").getMe()), expired);
    const client = restClient(rig);
    const post = { channel_id: dm, message: "x", root_id: "y".repeat(26) };
    strictEqual(
      await failure(client.createPost(post)),
      "400 api.post.create_post.root_id.app_error",
    );
    const unknown = client.patchPost({ id: "y".repeat(26), message: "a" });
    strictEqual(await failure(unknown), "403 api.context.permissions.app_error");
    double.fault({ action: { kind: "limited", retryAfterS: 1, resetS: 1 } });
    strictEqual(await failure(client.getMe()), "undefined undefined");
    // Twice, as the platform repeats by itself what was lost on a used connection.
    double.fault({ times: 2, action: { kind: "lost", isCommitted: true } });
    await rejects(() => client.createPost({ channel_id: dm, message: "lost" }));
    strictEqual(double.postsIn(dm).at(-1)?.message, "lost");
    double.setDisabled(bot.id, "disabled");
    strictEqual(await failure(client.getMe()), expired);
  });
});

Deno.test("Client4 does all that a bot does", async () => {
  for (const profile of ["v10.11", "v11", "v12"] as const) {
    await withRig({ knobs: { profile } }, (rig) => botsDay(rig));
  }
});

async function botsDay(rig: Rig): Promise<void> {
  const { double, owner, bot, dm } = rig;
  const client = restClient(rig);
  strictEqual((await client.ping(false)).status, "OK");
  strictEqual((await client.getMe()).id, bot.id);
  assert(client.getServerVersion().startsWith("11.11.1."));
  strictEqual((await client.getClientConfig()).MaxFileSize, `${100 * 1024 * 1024}`);
  strictEqual((await client.createDirectChannel([bot.id, owner.id])).id, dm);
  strictEqual((await client.getUserByUsername("owner")).id, owner.id);
  strictEqual((await client.getProfilesByIds([owner.id])).length, 1);
  strictEqual((await client.getChannel(dm)).type, "D");
  strictEqual((await client.getMyChannelMember(dm)).user_id, bot.id);
  await client.viewMyChannel(dm);
  const asked = double.postAs(owner.id, { channel_id: dm, message: "question" });
  const form = new FormData();
  form.append("channel_id", dm);
  form.append("files", new Blob(["text"], { type: "text/plain" }), "a.txt");
  const uploaded = await client.uploadFile(form);
  const made = await client.createPost({
    channel_id: dm,
    message: "answer",
    root_id: asked.id,
    pending_post_id: `${bot.id}:1`,
    file_ids: uploaded.file_infos.map((info) => info.id),
  });
  strictEqual(made.metadata.files?.[0]?.name, "a.txt");
  const patched = await client.patchPost({ id: made.id, message: "better answer" });
  strictEqual(patched.message, "better answer");
  strictEqual((await client.addReaction(bot.id, asked.id, "eyes")).emoji_name, "eyes");
  strictEqual((await client.getReactionsForPost(asked.id)).length, 1);
  await client.removeReaction(bot.id, asked.id, "eyes");
  const page = await client.getPosts(dm, 0, 100);
  strictEqual(page.order.join(), [made.id, asked.id].join());
  strictEqual((await client.getPostsAfter(dm, asked.id)).order.join(), made.id);
  assert((await client.getPostsSince(dm, asked.create_at)).order.includes(asked.id));
  strictEqual((await client.getPostThread(asked.id)).order.length, 2);
  strictEqual((await client.getPostsByIds([made.id, asked.id])).length, 2);
  strictEqual((await client.getPost(made.id)).props["from_bot"], "true");
  strictEqual((await client.deletePost(made.id)).status, "OK");
  strictEqual(await failure(client.getPost(made.id)), "404 app.post.get.app_error");
}

const FAST = {
  minWebSocketRetryTime: 20,
  maxWebSocketRetryTime: 20,
  reconnectJitterRange: 1,
  clientPingInterval: 100,
};

/** The official socket, signed in by header or by challenge, with what it heard. */
function socketClient(rig: Rig, how: "header" | "challenge") {
  const heard: string[] = [];
  const sockets: WebSocket[] = [];
  const headers: Record<string, string> = how === "header"
    ? { authorization: `Bearer ${rig.bot.token}` }
    : {};
  const client = new WebSocketClient({
    ...FAST,
    newWebSocketFn: (url) => {
      const socket = new WebSocket(url, { headers });
      sockets.push(socket);
      return socket;
    },
  });
  client.addMessageListener((message) => {
    const { data } = message;
    const post = isRecord(data) && typeof data.post === "string"
      ? JSON.parse(data.post).message
      : "";
    heard.push(post === "" ? message.event : `${message.event} ${post}`);
  });
  client.addMissedMessageListener(() => heard.push("missed"));
  client.addReconnectListener(() => heard.push("reconnected"));
  const url = `${rig.double.url.replace("http", "ws")}/api/v4/websocket`;
  client.initialize(url, how === "challenge" ? rig.bot.token : undefined);
  return {
    client,
    heard,
    until: async (word: string) => {
      for (let n = 0; n < 400 && !heard.includes(word); n++) await pause(10);
      assert(heard.includes(word), `never heard "${word}" but ${heard.join(", ")}`);
    },
    end: async () => {
      client.close();
      client.clearReconnectTimeout();
      const closing = sockets.filter((one) => one.readyState !== WebSocket.CLOSED);
      await Promise.all(closing.map((one) => {
        const closed = new Promise((resolve) => one.addEventListener("close", resolve));
        one.close();
        return closed;
      }));
    },
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("WebSocketClient hears posts, edits, removals and reactions in both ways of signing in", async () => {
  for (const how of ["header", "challenge"] as const) {
    await withRig({}, async (rig) => {
      const { double, owner, dm } = rig;
      const socket = socketClient(rig, how);
      await socket.until("hello");
      const post = double.postAs(owner.id, { channel_id: dm, message: "one" });
      double.editAs(owner.id, post.id, { message: "two" });
      double.reactAs(owner.id, post.id, "tada");
      double.deleteAs(owner.id, post.id);
      await socket.until("post_deleted two");
      assert(socket.heard.join().includes("posted one,post_edited two,reaction_added"));
      await socket.end();
    });
  }
});

Deno.test("WebSocketClient gets by header what a drop kept from it, and by challenge does not", async () => {
  for (const how of ["header", "challenge"] as const) {
    await withRig({}, async (rig) => {
      const { double, owner, dm } = rig;
      const socket = socketClient(rig, how);
      await socket.until("hello");
      double.drop("rst");
      double.postAs(owner.id, { channel_id: dm, message: "while away" });
      if (how === "header") await socket.until("posted while away");
      else await socket.until("missed");
      assert(socket.heard.includes("missed") === (how === "challenge"));
      double.postAs(owner.id, { channel_id: dm, message: "back" });
      await socket.until("posted back");
      await socket.end();
    });
  }
});

Deno.test("WebSocketClient leaves a silent line, a gap and a restarted server behind", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, dm } = rig;
    const socket = socketClient(rig, "header");
    await socket.until("hello");
    double.set({ pingReplyWithheld: true });
    await socket.until("reconnected");
    double.set({ pingReplyWithheld: false });
    double.skipSeq();
    double.postAs(owner.id, { channel_id: dm, message: "behind the gap" });
    double.bounce();
    await socket.until("missed");
    double.postAs(owner.id, { channel_id: dm, message: "after" });
    await socket.until("posted after");
    const queries = double.traffic().filter((one) => one.kind === "socket")
      .filter((one) => one.what === "upgraded").map((one) => one.detail);
    assert(queries[0]?.startsWith("connection_id=&sequence_number=0"));
    await socket.end();
  });
});

Deno.test("WebSocketClient stays deaf on a revoked session, which is why its user must not", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, bot, dm } = rig;
    const socket = socketClient(rig, "header");
    await socket.until("hello");
    double.revokeToken(bot.token);
    await pause(250); // More than two of its pings, each answered FAIL.
    double.postAs(owner.id, { channel_id: dm, message: "unheard" });
    strictEqual(double.sockets(), 1);
    strictEqual(socket.heard.join(), "hello");
    await socket.end();
  });
});
