// Guards the faults of single requests: each is what it says, whether the request took effect, and
// that it is used up.
import { ok as assert, rejects, strictEqual } from "node:assert";
import type { RestAction } from "./knobs.ts";
import { rest, type Rig, startRig, wire } from "./rig.ts";

const post = (rig: Rig) => ({
  channel_id: rig.dm,
  message: "hello",
  props: { unsafe_links: "true" },
  pending_post_id: `${rig.bot.id}:${crypto.randomUUID()}`,
});

async function withFault(
  action: RestAction,
  run: (rig: Rig) => Promise<void>,
  expected: { readonly posts: number },
) {
  const rig = await startRig();
  try {
    rig.double.fault({ method: "POST", path: "^/posts$", action });
    await run(rig);
    strictEqual(rig.double.postsIn(rig.dm).length, expected.posts, "posts made under the fault");
    strictEqual(rig.double.faultsLeft(), 0);
    strictEqual((await rest(rig, "POST", "/posts", post(rig))).status, 201);
  } finally {
    await rig.double.stop();
  }
}

const answered =
  (status: number, look: (text: string, headers: Headers) => void) => async (rig: Rig) => {
    const reply = await rest(rig, "POST", "/posts", post(rig));
    strictEqual(reply.status, status);
    look(reply.text, reply.headers);
  };
const broken = async (rig: Rig) => {
  await rejects(() => rest(rig, "POST", "/posts", post(rig)));
};

Deno.test("fault() lost: the post is made or not, and no answer comes", async () => {
  await withFault({ kind: "lost", isCommitted: true }, broken, { posts: 1 });
  await withFault({ kind: "lost", isCommitted: false }, broken, { posts: 0 });
});

Deno.test("a POST lost on a used connection is repeated by the platform: one post by its pending id, else two", async () => {
  const rig = await startRig();
  const { double, dm } = rig;
  try {
    await rest(rig, "GET", "/users/me");
    double.fault({ method: "POST", action: { kind: "lost", isCommitted: true } });
    strictEqual((await rest(rig, "POST", "/posts", post(rig))).status, 201);
    const made = double.traffic().filter((one) => one.kind === "request" && one.method === "POST");
    strictEqual(made.map((one) => one.kind === "request" && one.isEcho).join(), "false,true");
    strictEqual(double.postsIn(dm).length, 1);
    double.fault({ method: "POST", action: { kind: "lost", isCommitted: true } });
    const bare = { channel_id: dm, message: "no key" };
    strictEqual((await rest(rig, "POST", "/posts", bare)).status, 201);
    strictEqual(double.postsIn(dm).length, 3);
  } finally {
    await double.stop();
  }
});

Deno.test("fault() truncated, wrong-type and slow spoil an answer that was true", async () => {
  await withFault({ kind: "truncated" }, broken, { posts: 1 });
  await withFault(
    { kind: "wrong-type" },
    answered(201, (_, headers) => assert(headers.get("content-type")?.startsWith("text/html"))),
    { posts: 1 },
  );
  await withFault({ kind: "slow", ms: 30 }, answered(201, () => {}), { posts: 1 });
});

Deno.test("fault() proxy and empty answer for the server, before or after it acted", async () => {
  const isPage = (text: string) => assert(text.startsWith("<html>"));
  await withFault({ kind: "proxy", status: 502, isCommitted: true }, answered(502, isPage), {
    posts: 1,
  });
  await withFault({ kind: "proxy", status: 504, isCommitted: false }, answered(504, isPage), {
    posts: 0,
  });
  const isEmpty = (text: string) => strictEqual(text, "");
  await withFault({ kind: "empty", status: 503, isCommitted: false }, answered(503, isEmpty), {
    posts: 0,
  });
});

Deno.test("fault() refuse, limited and redirect never act", async () => {
  const pending = "api.post.deduplicate_create_post.pending";
  await withFault(
    { kind: "refuse", status: 500, id: pending },
    answered(500, (text) => strictEqual(JSON.parse(text).id, pending)),
    { posts: 0 },
  );
  const limited = (after: string | null) =>
    answered(429, (text, headers) => {
      strictEqual(text, "limit exceeded\n");
      strictEqual(headers.get("content-type"), "text/plain; charset=utf-8");
      strictEqual(headers.get("retry-after"), after);
      strictEqual(headers.get("x-ratelimit-reset"), "2");
    });
  await withFault({ kind: "limited", retryAfterS: 1, resetS: 2 }, limited("1"), { posts: 0 });
  await withFault({ kind: "limited", retryAfterS: null, resetS: 2 }, limited(null), { posts: 0 });
  await withFault(
    { kind: "redirect", location: "http://127.0.0.1:1/" },
    answered(302, (_, headers) => strictEqual(headers.get("location"), "http://127.0.0.1:1/")),
    { posts: 0 },
  );
});

Deno.test("fault() waits for its request, and skips as many as it was told to", async () => {
  const rig = await startRig();
  const { double } = rig;
  try {
    const action: RestAction = { kind: "refuse", status: 403, id: "no" };
    double.fault({ method: "GET", path: "^/users/", skip: 1, times: 2, action });
    const statuses: number[] = [];
    for (let n = 0; n < 5; n++) statuses.push((await rest(rig, "GET", "/users/me")).status);
    strictEqual(statuses.join(" "), "200 403 403 200 200");
    double.fault({ action });
    double.calm();
    strictEqual((await rest(rig, "GET", "/users/me")).status, 200);
  } finally {
    await double.stop();
  }
});

Deno.test("set() rateLimit: a burst passes, the rest hears how long to wait", async () => {
  const rig = await startRig({ knobs: { rateLimit: { perSecond: 1, burst: 3 } } });
  try {
    const replies = [];
    for (let n = 0; n < 4; n++) replies.push(await rest(rig, "GET", "/users/me"));
    strictEqual(replies.map((one) => one.status).join(" "), "200 200 200 429");
    strictEqual(replies[0]?.headers.get("x-ratelimit-limit"), "3");
    strictEqual(replies[3]?.headers.get("retry-after"), "1");
    strictEqual(replies[0]?.headers.get("retry-after"), null);
    const upgrade = wire(rig);
    strictEqual(await upgrade.hasOpened, false);
    await upgrade.closed;
  } finally {
    await rig.double.stop();
  }
});
