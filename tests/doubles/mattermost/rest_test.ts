// The double's REST side against the contract: what each call answers and refuses, evil case first.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { type Json, rest, type Rig, startRig } from "./rig.ts";
import type { MattermostOptions } from "./double.ts";

async function withRig(options: MattermostOptions, run: (rig: Rig) => Promise<void>) {
  const rig = await startRig(options);
  try {
    await run(rig);
  } finally {
    await rig.double.stop();
  }
}

const draft = (rig: Rig, more: object = {}) => ({
  channel_id: rig.dm,
  message: "hello",
  props: { unsafe_links: "true" },
  pending_post_id: `${rig.bot.id}:${crypto.randomUUID()}`,
  ...more,
});
const idOf = (json: Json) => `${json.id}`;
const names = (json: Json) => Object.values(json).map((one) => `${one}`);

Deno.test("REST refuses bad credentials and unknown routes with the server's own ids", async () => {
  await withRig({}, async (rig) => {
    const { double, bot } = rig;
    const nobody = await rest(rig, "GET", "/users/me", undefined, { authorization: "" });
    strictEqual(nobody.status, 401);
    strictEqual(idOf(nobody.json), "api.context.session_expired.app_error");
    const query = await rest(rig, "GET", `/users/me?access_token=${bot.token}`, undefined, {
      authorization: "",
    });
    strictEqual(idOf(query.json), "api.context.token_provided.app_error");
    const cookie = { cookie: "MMAUTHTOKEN=stale" };
    strictEqual((await rest(rig, "GET", "/users/me", undefined, cookie)).status, 401);
    const csrf = { cookie: `MMAUTHTOKEN=${bot.token}` };
    strictEqual((await rest(rig, "POST", "/posts", draft(rig), csrf)).status, 401);
    strictEqual(idOf((await rest(rig, "GET", "/nothing")).json), "api.context.404.app_error");
    const lower = { authorization: `bEaReR ${bot.token}` };
    const me = await rest(rig, "GET", "/users/me", undefined, lower);
    strictEqual(`${me.json.is_bot} ${me.json.delete_at}`, "true 0");
    strictEqual(me.headers.get("content-type"), "application/json");
    strictEqual(me.headers.get("expires"), "0");
    assert(/^11\.11\.1\.\d+\./.test(me.headers.get("x-version-id") ?? ""));
    assert(
      (await rest(rig, "GET", "/system/ping", undefined, { authorization: "" })).status === 200,
    );
    double.revokeToken(bot.token);
    strictEqual((await rest(rig, "GET", "/users/me")).status, 401);
    double.addToken(bot.id, bot.token, Date.now() - 1);
    strictEqual((await rest(rig, "GET", "/users/me")).status, 401);
    double.addToken(bot.id, bot.token);
    double.setDisabled(bot.id, "disabled");
    strictEqual((await rest(rig, "GET", "/users/me")).status, 401);
    double.setDisabled(bot.id, "enabled");
    double.set({ sessionsInvalid: true });
    strictEqual((await rest(rig, "GET", "/users/me")).status, 401);
  });
});

Deno.test("POST /posts checks channel, root, length and id before it makes anything", async () => {
  await withRig({ knobs: { maxPostSize: 10 } }, async (rig) => {
    const { double, owner, dm } = rig;
    const other = double.addChannel({ type: "O", name: "town", members: [owner.id] });
    const root = double.postAs(owner.id, { channel_id: dm, message: "root" });
    const reply = double.postAs(owner.id, { channel_id: dm, message: "r", root_id: root.id });
    const foreign = double.postAs(owner.id, { channel_id: other.id, message: "x" });
    const before = double.postsIn(dm).length;
    const refused = async (more: object) => {
      const { status, json } = await rest(rig, "POST", "/posts", draft(rig, more));
      return `${status} ${json.id}`;
    };
    strictEqual(await refused({ channel_id: other.id }), "403 api.context.permissions.app_error");
    strictEqual(await refused({ id: root.id }), "400 api.context.invalid_body_param.app_error");
    strictEqual(
      await refused({ message: "\u{1f600}".repeat(11) }),
      "400 model.post.is_valid.message_length.app_error",
    );
    const badRoot = "400 api.post.create_post.root_id.app_error";
    strictEqual(await refused({ root_id: "x".repeat(26) }), badRoot);
    strictEqual(await refused({ root_id: reply.id }), badRoot);
    strictEqual(
      await refused({ root_id: foreign.id }),
      "400 api.post.create_post.channel_root_id.app_error",
    );
    assert((await refused({ type: "system_join" })).startsWith("400 "));
    double.deleteAs(owner.id, root.id);
    strictEqual(await refused({ root_id: root.id }), badRoot);
    double.archiveChannel(other.id);
    assert((await refused({ channel_id: other.id })).startsWith("400 "));
    double.set({ dmRestricted: true });
    strictEqual(
      await refused({}),
      "400 api.post.create_post.can_not_post_in_restricted_dm.error",
    );
    double.set({ dmRestricted: false });
    assert((await refused({ silent: true })).startsWith("403 "));
    strictEqual(double.postsIn(dm).length, before - 2);
    const full = await rest(rig, "POST", "/posts", draft(rig, { message: "\u{1f600}".repeat(10) }));
    strictEqual(full.status, 201);
    const big = await rest(rig, "POST", "/posts", draft(rig, { message: "x".repeat(300_001) }));
    strictEqual(big.status, 413);
  });
});

Deno.test("POST /posts makes one post per pending id, for thirty seconds and until a restart", async () => {
  await withRig({ timeScale: 0.02 }, async (rig) => {
    const { double, dm } = rig;
    double.set({ createDelayMs: 300 });
    const body = draft(rig);
    const first = rest(rig, "POST", "/posts", body);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const twin = await rest(rig, "POST", "/posts", body);
    strictEqual(`${twin.status} ${twin.json.id}`, "500 api.post.deduplicate_create_post.pending");
    const made = await first;
    double.set({ createDelayMs: 0 });
    const again = await rest(rig, "POST", "/posts", body);
    strictEqual(again.status, 201);
    strictEqual(idOf(again.json), idOf(made.json));
    strictEqual(`${again.json.pending_post_id}`, "");
    strictEqual(double.postsIn(dm).length, 1);
    const entries = double.traffic().filter((one) => one.kind === "request");
    deepStrictEqual(entries.map((one) => one.isEcho), [false, false, true]);
    double.bounce();
    assert(idOf((await rest(rig, "POST", "/posts", body)).json) !== idOf(made.json));
    await new Promise((resolve) => setTimeout(resolve, 650));
    const late = await rest(rig, "POST", "/posts", body);
    strictEqual(late.status, 201);
    strictEqual(double.postsIn(dm).length, 3);
  });
});

Deno.test("PUT /posts replaces the props as each version does, and keeps an edit copy", async () => {
  for (const profile of ["v10.11", "v11", "v12"] as const) {
    await withRig({ knobs: { profile } }, async (rig) => {
      const { double, owner, dm } = rig;
      const forged = { from_webhook: "true", override_username: "x", mine: 1 };
      const made = await rest(rig, "POST", "/posts", draft(rig, { props: forged }));
      const isStripped = profile === "v12";
      strictEqual(`${made.json.props?.from_bot} ${made.json.props?.mine}`, "true 1");
      strictEqual("from_webhook" in (made.json.props ?? {}), !isStripped);
      const patched = await rest(rig, "PUT", `/posts/${made.json.id}/patch`, {
        message: "new",
        props: { unsafe_links: "true" },
      });
      strictEqual(patched.status, 200);
      strictEqual("from_bot" in (patched.json.props ?? {}), profile !== "v10.11");
      strictEqual("mine" in (patched.json.props ?? {}), false);
      assert(Number(`${patched.json.edit_at}`) > 0);
      const plain = await rest(rig, "PUT", `/posts/${made.json.id}/patch`, { message: "newer" });
      strictEqual(`${plain.json.props?.unsafe_links}`, "true");
      const since = await rest(rig, "GET", `/channels/${dm}/posts?since=1`);
      const copies = Object.values(since.json.posts ?? {}).filter((post) =>
        `${post.original_id}` === idOf(made.json)
      );
      strictEqual(copies.length, 2);
      assert(copies.every((post) => Number(`${post.delete_at}`) > 0));
      const unknown = await rest(rig, "PUT", `/posts/${"x".repeat(26)}/patch`, { message: "a" });
      strictEqual(unknown.status, 403);
      const theirs = double.postAs(owner.id, { channel_id: dm, message: "mine" });
      strictEqual(
        (await rest(rig, "PUT", `/posts/${theirs.id}/patch`, { message: "a" })).status,
        403,
      );
      double.set({ postEditTimeLimitS: 0 });
      await new Promise((resolve) => setTimeout(resolve, 5));
      const late = await rest(rig, "PUT", `/posts/${made.json.id}/patch`, { message: "late" });
      strictEqual(idOf(late.json), "api.post.update_post.permissions_time_limit.app_error");
      double.set({ postEditTimeLimitS: -1 });
      strictEqual((await rest(rig, "DELETE", `/posts/${made.json.id}`)).status, 200);
      strictEqual((await rest(rig, "DELETE", `/posts/${made.json.id}`)).status, 404);
      strictEqual((await rest(rig, "GET", `/posts/${made.json.id}`)).status, 404);
      const gone = await rest(rig, "PUT", `/posts/${made.json.id}/patch`, { message: "a" });
      strictEqual(gone.status, 400);
    });
  }
});

Deno.test("GET posts lists by page, after and since, each with its own gaps", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, dm } = rig;
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      ids.push(double.postAs(owner.id, { channel_id: dm, message: `m${n}` }).id);
    }
    const root = ids[0] ?? "";
    const reply = double.postAs(owner.id, { channel_id: dm, message: "r", root_id: root });
    const list = async (query: string) =>
      (await rest(rig, "GET", `/channels/${dm}/posts?${query}`)).json;
    const order = async (query: string) => names((await list(query)).order ?? {});
    deepStrictEqual(await order("page=0&per_page=3"), [reply.id, ids[4], ids[3]]);
    deepStrictEqual(await order("page=1&per_page=3"), [ids[2], ids[1], ids[0]]);
    const page = await list("page=0&per_page=1&skipFetchThreads=true");
    deepStrictEqual(Object.keys(page.posts ?? {}).toSorted(), [root, reply.id].toSorted());
    deepStrictEqual(await order(`after=${ids[2]}&per_page=2`), [ids[4], ids[3]]);
    deepStrictEqual(await order(`before=${ids[2]}&per_page=2`), [ids[1], ids[0]]);
    double.deleteAs(owner.id, ids[1] ?? "");
    assert(!(await order("page=0&per_page=100")).includes(ids[1] ?? ""));
    deepStrictEqual(await order(`after=${ids[1]}&per_page=1`), [ids[2]]);
    const since = await list("since=1");
    const deleted = Object.values(since.posts ?? {}).find((post) => idOf(post) === ids[1]);
    strictEqual(`${deleted?.message}|${Number(`${deleted?.delete_at}`) > 0}`, "|true");
    const mark = double.post(reply.id)?.create_at ?? 0;
    deepStrictEqual(await order(`since=${mark - 1}`), [reply.id, ids[1], root]);
    assert((await order("since=1&collapsedThreads=true")).every((id) => id !== reply.id));
    double.set({ sinceEmpty: true });
    deepStrictEqual(await order("since=1"), []);
    double.set({ sinceEmpty: false, pagesDrift: true });
    const first = await order("page=0&per_page=2");
    const second = await order("page=1&per_page=2");
    strictEqual(second[0], first[1]);
    double.set({ pagesDrift: false, profile: "v10.11" });
    assert((await order("since=1&collapsedThreads=1")).includes(reply.id));
    const byIds = await rest(rig, "POST", "/posts/ids", [ids[1], ids[2]]);
    strictEqual(Object.values(byIds.json).length, 2);
    const thread = await rest(rig, "GET", `/posts/${reply.id}/thread?direction=down`);
    deepStrictEqual(names(thread.json.order ?? {}), [root, reply.id]);
    strictEqual((await rest(rig, "GET", `/posts/${root}/thread?perPage=201`)).status, 400);
    double.purgePost(ids[2] ?? "");
    deepStrictEqual(await order(`after=${ids[2]}`), []);
  });
});

Deno.test("since holds at most a thousand posts, and the clock may stand or run backwards", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, dm } = rig;
    for (let n = 0; n < 1010; n++) double.postAs(owner.id, { channel_id: dm, message: `m${n}` });
    const since = await rest(rig, "GET", `/channels/${dm}/posts?since=1`);
    strictEqual(names(since.json.order ?? {}).length, 1000);
    const capped = await rest(rig, "GET", `/channels/${dm}/posts?per_page=500&page=0`);
    strictEqual(names(capped.json.order ?? {}).length, 200);
    double.set({ clock: "same" });
    const [a, b] = ["a", "b"].map((text) =>
      double.postAs(owner.id, { channel_id: dm, message: text }).create_at
    );
    strictEqual(a, b);
    double.set({ clock: "backwards" });
    const earlier = double.postAs(owner.id, { channel_id: dm, message: "c" }).create_at;
    assert(earlier < (b ?? 0));
  });
});

Deno.test("users, channels, typing, reactions and the configuration answer as the server does", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, bot, dm } = rig;
    const direct = await rest(rig, "POST", "/channels/direct", [bot.id, owner.id]);
    strictEqual(`${direct.status} ${direct.json.id} ${direct.json.type}`, `201 ${dm} D`);
    strictEqual(`${direct.json.name}`, [bot.id, owner.id].toSorted().join("__"));
    const config = await rest(rig, "GET", "/config/client?format=old");
    strictEqual(`${config.json.MaxPostSize}`, "16383");
    double.set({ linkPreviews: false, typingIntervalMs: 7_000, postEditTimeLimitS: 60 });
    const { json } = await rest(rig, "GET", "/config/client?format=old");
    strictEqual(`${json.EnableLinkPreviews} ${json.PostEditTimeLimit}`, "false 60");
    strictEqual(`${json.TimeBetweenUserTypingUpdatesMilliseconds}`, "7000");
    double.calm();
    double.set({ profile: "v10.11" });
    strictEqual((await rest(rig, "GET", "/config/client")).status, 501);
    double.set({ profile: "v11" });
    strictEqual(idOf((await rest(rig, "GET", "/users/username/owner")).json), owner.id);
    strictEqual(Object.values((await rest(rig, "POST", "/users/ids", [owner.id])).json).length, 1);
    strictEqual((await rest(rig, "GET", `/channels/${dm}`)).status, 200);
    strictEqual((await rest(rig, "GET", `/channels/${dm}/members/me`)).status, 200);
    const town = double.addChannel({ type: "O", name: "town", members: [owner.id] });
    strictEqual((await rest(rig, "GET", `/channels/${town.id}/members/me`)).status, 403);
    double.setMembers(town.id, [owner.id, bot.id]);
    strictEqual((await rest(rig, "GET", `/channels/${town.id}/members/me`)).status, 200);
    strictEqual(Object.values((await rest(rig, "GET", "/users/me/channels")).json).length, 2);
    strictEqual((await rest(rig, "GET", "/users/me/teams")).status, 200);
    const view = { channel_id: dm };
    strictEqual((await rest(rig, "POST", "/channels/members/me/view", view)).status, 200);
    strictEqual((await rest(rig, "POST", "/users/me/typing", view)).status, 200);
    double.set({ isBusy: true });
    strictEqual((await rest(rig, "POST", "/users/me/typing", view)).status, 503);
    const post = double.postAs(owner.id, { channel_id: dm, message: "hi" });
    const reaction = { user_id: bot.id, post_id: post.id, emoji_name: "Eyes" };
    strictEqual(`${(await rest(rig, "POST", "/reactions", reaction)).json.emoji_name}`, "eyes");
    strictEqual((await rest(rig, "POST", "/reactions", reaction)).status, 200);
    strictEqual(double.reactionsOf(post.id).length, 1);
    const shown = await rest(rig, "GET", `/posts/${post.id}`);
    strictEqual(`${Object.values(shown.json.metadata?.reactions ?? {})[0]?.emoji_name}`, "eyes");
    const foreign = { ...reaction, user_id: owner.id };
    strictEqual((await rest(rig, "POST", "/reactions", foreign)).status, 403);
    const unknown = { ...reaction, emoji_name: "no_such_emoji" };
    strictEqual((await rest(rig, "POST", "/reactions", unknown)).status, 404);
    double.set({ reactionLimit: 1 });
    const second = { ...reaction, emoji_name: "tada" };
    strictEqual((await rest(rig, "POST", "/reactions", second)).status, 400);
    const path = `/users/${bot.id}/posts/${post.id}/reactions/eyes`;
    strictEqual((await rest(rig, "DELETE", path)).status, 200);
    strictEqual((await rest(rig, "GET", `/posts/${post.id}/reactions`)).text, "[]");
    double.set({ reactionsNull: true });
    strictEqual((await rest(rig, "GET", `/posts/${post.id}/reactions`)).text, "null");
  });
});

Deno.test("POST /files takes both kinds of upload and refuses what the server refuses", async () => {
  await withRig({ knobs: { maxFileSize: 100 } }, async (rig) => {
    const { double, bot, dm } = rig;
    const upload = async (body: BodyInit, query = "", headers: Record<string, string> = {}) => {
      const response = await fetch(`${double.url}/api/v4/files${query}`, {
        method: "POST",
        headers: { authorization: `Bearer ${bot.token}`, ...headers },
        body,
      });
      const json: Json = JSON.parse(await response.text());
      return { status: response.status, json };
    };
    const form = (keys: readonly string[]) => {
      const data = new FormData();
      for (const key of keys) {
        if (key === "files") data.append(key, new Blob(["long answer"]), "answer.txt");
        else data.append(key, dm);
      }
      return data;
    };
    strictEqual((await upload(form(["files", "channel_id"]))).status, 400);
    const query = `?channel_id=${dm}&filename=a.md`;
    const type = { "content-type": "text/markdown" };
    strictEqual((await upload("x".repeat(101), query, type)).status, 413);
    strictEqual((await upload("", query, type)).status, 400);
    const made = await upload(form(["channel_id", "files"]));
    strictEqual(made.status, 201);
    const id = `${Object.values(made.json.file_infos ?? {})[0]?.id}`;
    strictEqual((await upload("hello", query, type)).status, 201);
    const post = await rest(rig, "POST", "/posts", draft(rig, { file_ids: [id, "unknown"] }));
    strictEqual(JSON.stringify(post.json.file_ids), JSON.stringify([id]));
    const file = Object.values(post.json.metadata?.files ?? {})[0];
    strictEqual(`${file?.name} ${file?.size}`, "answer.txt 11");
    const down = await fetch(`${double.url}/api/v4/files/${id}`, {
      headers: { authorization: `Bearer ${bot.token}` },
    });
    strictEqual(await down.text(), "long answer");
    strictEqual(double.fileText(id), "long answer");
    strictEqual((await rest(rig, "GET", `/files/${id}/info`)).status, 200);
    strictEqual((await rest(rig, "GET", `/files/${"x".repeat(26)}`)).status, 404);
    double.set({ filesDropped: true });
    const other = await upload("hello", query, type);
    const otherId = `${Object.values(other.json.file_infos ?? {})[0]?.id}`;
    const bare = await rest(rig, "POST", "/posts", draft(rig, { file_ids: [otherId] }));
    strictEqual(bare.json.file_ids, undefined);
    double.set({ filesAllowed: false });
    strictEqual((await upload("hello", query, type)).status, 403);
  });
});
