// Guards brokerd on its real sockets: who may ask what, and that an answer holds whatever socket,
// restart or size is in between. The runtime is a fake, memoryd a double on its own socket.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { ok as good } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import {
  type Exchange,
  exchange,
  message,
  type MessageSchema,
  type Said,
} from "../../shared/wire/exchange.ts";
import { listen, type Listening, on } from "../../shared/wire/listen.ts";
import * as loop from "../../shared/wire/loop_broker.ts";
import * as owner from "../../shared/wire/broker_owner.ts";
import { GATEWAY_ANSWER } from "../../shared/wire/broker_gateway.ts";
import { MEMORY_CALL, SESSION_STATE } from "../../shared/wire/memory.ts";
import { servedBy, type SocketName, socketPath } from "../../shared/wire/sockets.ts";
import { z } from "zod";
import {
  type FakeRuntime,
  fakeRuntime,
  grantToml,
  makeDisk,
  newCall,
  newSession,
  newTurn,
  outcomeOf,
  ROOT,
  testHouse,
} from "../../tests/doubles/broker_house.ts";
import { type House, openHouse } from "./house.ts";
import { peers } from "./peers.ts";
import { serve, TABLE } from "./requests.ts";

type World = {
  readonly home: string;
  readonly root: string;
  readonly fake: FakeRuntime;
  readonly memory: { session: string; staged: boolean; untrusted: boolean; args: string }[];
  house: House;
  path(name: SocketName): string;
  restart(): Promise<void>;
};

function layOut(): { home: string; root: string } {
  const base = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const home = `${base}/h`;
  const pairs = ["loop-broker", "broker-gateway", "broker-memory", "owner-broker", "broker-egress"];
  for (
    const name of [
      "",
      "audit",
      "broker",
      "grants",
      "jobs",
      "run",
      ...pairs.map((one) => `run/${one}`),
    ]
  ) {
    Deno.mkdirSync(`${home}/${name}`, { recursive: true, mode: 0o700 });
  }
  Deno.mkdirSync(`${base}/docs`);
  Deno.mkdirSync(`${base}/image`);
  Deno.writeTextFileSync(`${base}/docs/a.txt`, "hello");
  const planted = makeDisk({});
  for (const name of ["image.json", "catalog.json"]) {
    const file = planted.open(`/srv/image/${name}`, "read");
    const bytes = new Uint8Array(file.stat().size);
    file.read(bytes);
    file.close();
    Deno.writeFileSync(`${base}/image/${name}`, bytes);
  }
  for (const [tool, mode] of [["read_file", "auto"], ["list_dir", "ask"]] as const) {
    Deno.writeTextFileSync(
      `${home}/grants/${tool}.toml`,
      grantToml(tool, mode).replaceAll(ROOT, `${base}/docs`),
    );
  }
  return { home, root: `${base}/docs` };
}

async function withSockets(body: (world: World) => Promise<void>): Promise<void> {
  const { home, root } = layOut();
  const path = (name: SocketName) => socketPath(home, name);
  const fake = fakeRuntime();
  const memory: World["memory"] = [];
  const memoryd = listen({
    path: path("broker-memory/memory"),
    log: () => {},
    routes: [on(MEMORY_CALL, async ({ session, staged, label }, io) => {
      const args = new TextDecoder().decode(io.upload);
      memory.push({ session, staged, untrusted: label.untrusted, args });
      await io.chunk(encodeUtf8("a hit"));
      return good({
        kind: "memory_result",
        body: { outcome: "done", code: null, label: { class: "private", untrusted: true } },
      });
    })],
  });
  const begin = () => {
    const { ports } = testHouse({ config: { paths: { roots: [root] } } });
    const opened = openHouse({
      ...ports,
      ...peers(home, path),
      home,
      disk: denoDisk,
      clock: systemClock,
      random: systemRandom,
      runtime: fake.runtime,
      imageFolder: `${root}/../image`,
      forbidden: [home],
    });
    if (!opened.ok) throw new Error(opened.detail);
    return opened.value;
  };
  let servers: Listening[] = [];
  const world: World = {
    home,
    root,
    fake,
    memory,
    house: begin(),
    path,
    async restart() {
      await Promise.all(servers.map((server) => server.close()));
      await world.house.close();
      world.house = begin();
      servers = serve(world.house, path);
    },
  };
  servers = serve(world.house, path);
  try {
    await body(world);
  } finally {
    await Promise.all([...servers, memoryd].map((server) => server.close()));
    await world.house.close();
    Deno.removeSync(`${home}/..`, { recursive: true });
  }
}

async function said<Q extends MessageSchema, E extends MessageSchema, R extends MessageSchema>(
  world: World,
  name: SocketName,
  what: Exchange<Q, E, R>,
  body: z.output<Q>["body"],
  upload?: string,
): Promise<{ reply: Said<R>; bytes: Uint8Array }> {
  const pieces: Uint8Array[] = [];
  const reply = await call(world.path(name), what, body, {
    onChunk: (bytes) => void pieces.push(bytes),
    ...(upload === undefined ? {} : { upload: encodeUtf8(upload) }),
  });
  if (!reply.ok) throw new Error(`${reply.code}: ${reply.detail}`);
  return { reply: reply.value, bytes: joinBytes(pieces) };
}

const LOOP = "loop-broker/broker";
const OWNER = "owner-broker/admin";

async function opened(world: World) {
  const session = newSession();
  await said(world, LOOP, loop.SESSION_OPEN, { session, kind: "chat", job: null, workspace: null });
  return { session, turn: newTurn(), call: newCall(), witness: null };
}

/** Follows the watch until `kind` is told of `id`. */
async function told(
  world: World,
  kind: string,
  id: string,
  act: () => Promise<unknown>,
): Promise<void> {
  const stop = new AbortController();
  let acted = false;
  await call(world.path(LOOP), loop.BROKER_WATCH, { boot: null, after: -1 }, {
    signal: stop.signal,
    onEvent: async (event) => {
      if (event.kind === "watch_start" && !acted) {
        acted = true;
        await act();
      } else if (event.kind === kind && "call" in event.body && event.body.call === id) {
        stop.abort();
      }
    },
  });
}

Deno.test("serve() a kind of another socket, an unknown one and a malformed one are refused and recorded", () =>
  withSockets(async (world) => {
    deepStrictEqual(Object.keys(TABLE).sort(), servedBy("brokerd").sort());
    for (const { kinds, routes } of Object.values(TABLE)) {
      deepStrictEqual(routes(world.house).map(({ kind }) => kind).sort(), kinds.toSorted());
    }
    const kinds = Object.values(TABLE).flatMap((row) => row.kinds);
    for (const name of servedBy("brokerd")) {
      for (const kind of new Set([...kinds, "nonsense", "approval_post"])) {
        if (TABLE[name]?.kinds.includes(kind)) continue;
        const any = exchange({
          request: message(kind, {}),
          replies: [message("never", {})],
        });
        const reply = await call(world.path(name), any, {});
        ok(!reply.ok && reply.code === "kind-unknown", `${name} answered ${kind}`);
      }
    }
    const conn = await Deno.connect({ transport: "unix", path: world.path(LOOP) });
    await conn.write(new Uint8Array([0, 0, 0, 2, 0x7b, 0x7d]));
    await conn.read(new Uint8Array(10));
    conn.close();
    const loose = exchange({
      request: message("session_open", { session: z.string(), role: z.string() }),
      replies: [message("never", {})],
    });
    const bad = await call(world.path(LOOP), loose, { session: "../x", role: "owner" });
    ok(!bad.ok && bad.code === "request-invalid");
    const refused = [...world.house.audit.records()].flatMap((one) =>
      one.kind === "refused" ? one.what : []
    );
    ok(refused.some((what) => what.startsWith("kind-unknown")));
    ok(refused.length <= 30, "a flood of refusals floods the audit log");
    deepStrictEqual(world.fake.runs, []);
  }));

Deno.test("tool_request asked, watched, shown, approved, fetched whole and acknowledged", () =>
  withSockets(async (world) => {
    const big = new Uint8Array(3_000_000).map((_, i) => (i * 7) % 256);
    world.fake.script = (plan, io) => {
      for (let at = 0; at < big.length; at += 65_000) io.onOutput(big.subarray(at, at + 65_000));
      return Promise.resolve(good(outcomeOf(plan)));
    };
    const one = await opened(world);
    const request = { ...one, tool: "list_dir" };
    const args = JSON.stringify({ path: world.root });
    await told(world, "approval_pending", one.call, async () => {
      const { reply } = await said(world, LOOP, loop.TOOL_REQUEST, request, args);
      ok(reply.kind === "pending" && reply.body.state === "waiting_approval");
    });
    const { reply: list } = await said(world, OWNER, owner.APPROVALS_LIST, {
      include_answered: false,
      limit: 10,
    });
    const approval = list.body.items[0]?.approval;
    ok(approval !== undefined);
    const { reply: shown, bytes } = await said(world, OWNER, owner.APPROVAL_SHOW, { approval });
    const lines = new TextDecoder().decode(bytes).trimEnd().split("\n");
    match(lines[0] ?? "", /list_dir/);
    ok(lines.at(-1)?.includes(shown.body.code));
    await told(world, "call_ready", one.call, async () => {
      const { reply } = await said(world, OWNER, owner.APPROVAL_ANSWER, {
        code: shown.body.code,
        answer: "approve",
      });
      strictEqual(reply.body.outcome, "approved");
    });
    for (const again of [1, 2]) {
      const { reply, bytes } = await said(world, LOOP, loop.TOOL_REQUEST, request, args);
      ok(reply.kind === "tool_response" && reply.body.outcome === "done", String(again));
      deepStrictEqual(bytes, big);
    }
    const { call: id, session } = one;
    await said(world, LOOP, loop.RESULT_ACK, { session, call: id });
    const gone = await call(world.path(LOOP), loop.RESULT_FETCH, { session, call: id });
    ok(!gone.ok && gone.code === "not-found");
    strictEqual(world.fake.runs.length, 1);
  }));

Deno.test("a question outlives brokerd, its denial reaches the next life, and gatewayd may answer it", () =>
  withSockets(async (world) => {
    const one = await opened(world);
    const args = JSON.stringify({ path: world.root });
    await said(world, LOOP, loop.TOOL_REQUEST, { ...one, tool: "list_dir" }, args);
    await world.restart();
    const code = world.house.approvals.list("pending")[0]?.code ?? "";
    const { reply } = await said(world, "broker-gateway/broker", GATEWAY_ANSWER, {
      code,
      answer: "deny",
      session: one.session,
      approval: null,
    });
    strictEqual(reply.body.outcome, "denied");
    const { reply: result } = await said(world, LOOP, loop.RESULT_FETCH, {
      session: one.session,
      call: one.call,
    });
    ok(result.kind === "tool_response");
    deepStrictEqual([result.body.outcome, result.body.code], ["denied", "denied_by_owner"]);
    deepStrictEqual(world.fake.runs, []);
  }));

Deno.test("a memory call carries the session's label and its answer taints the session", () =>
  withSockets(async (world) => {
    const one = await opened(world);
    const recall = { ...one, tool: "recall" };
    const { reply, bytes } = await said(world, LOOP, loop.TOOL_REQUEST, recall, '{"query":"x"}');
    ok(reply.kind === "tool_response" && reply.body.session_label.untrusted);
    strictEqual(new TextDecoder().decode(bytes), "a hit");
    const note = { ...one, call: newCall(), tool: "memory" };
    await said(world, LOOP, loop.TOOL_REQUEST, note, '{"action":"note","text":"x"}');
    deepStrictEqual(world.memory.map((seen) => [seen.staged, seen.untrusted]), [[false, false], [
      false,
      true,
    ]]);
    const { reply: state } = await said(world, "broker-memory/broker", SESSION_STATE, {
      session: one.session,
    });
    deepStrictEqual(state.body, { is_known: true, label: { class: "private", untrusted: true } });
    const { reply: other } = await said(world, "broker-memory/broker", SESSION_STATE, {
      session: newSession(),
    });
    strictEqual(other.body.is_known, false);
  }));

Deno.test("the owner stops, looks, explains, verifies and resumes over the socket", () =>
  withSockets(async (world) => {
    const one = await opened(world);
    const { reply: stopped } = await said(world, OWNER, owner.STOP, { why: "enough" });
    ok(stopped.body.is_stopped && !stopped.body.was_stopped);
    const args = JSON.stringify({ path: `${world.root}/a.txt` });
    const { reply: denied } = await said(world, LOOP, loop.TOOL_REQUEST, {
      ...one,
      tool: "read_file",
    }, args);
    ok(denied.kind === "tool_response" && denied.body.code === "stopped");
    const { reply: status } = await said(world, OWNER, owner.BROKER_STATUS, {});
    ok(status.body.is_stopped && status.body.runtime.is_ready && !status.body.egress.is_reachable);
    await said(world, OWNER, owner.RESUME, {});
    const label = { class: "private", untrusted: true } as const;
    const asked = { tool: "read_file", session: null, label };
    const { reply: explained } = await said(world, OWNER, owner.GRANTS_EXPLAIN, asked, args);
    strictEqual(explained.body.verdict, "ask");
    ok(explained.body.lines.some((line) => line.includes("read_file.toml")));
    const { reply: verified } = await said(world, OWNER, owner.AUDIT_VERIFY, {
      against: world.house.audit.head(),
    });
    ok(verified.body.is_whole, verified.body.finding);
    const { reply: tail, bytes } = await said(world, OWNER, owner.AUDIT_TAIL, { count: 2 });
    strictEqual(new TextDecoder().decode(bytes).trimEnd().split("\n").length, tail.body.lines);
    const { reply: grants } = await said(world, OWNER, owner.GRANTS_CHECK, {});
    strictEqual(grants.body.items.filter((grant) => !grant.is_built_in).length, 2);
  }));

Deno.test("tool_request a head that was never ours stops the house; too long arguments are refused", () =>
  withSockets(async (world) => {
    const one = await opened(world);
    const witness = { n: 0, hash: "f".repeat(64) };
    const request = { ...one, tool: "clock" };
    const options = { upload: encodeUtf8("{}") };
    const reply = await call(world.path(LOOP), loop.TOOL_REQUEST, { ...request, witness }, options);
    ok(!reply.ok && reply.code === "audit-broken");
    ok(world.house.stop.isStopped());
    await said(world, OWNER, owner.RESUME, {});
    const { reply: after } = await said(world, LOOP, loop.TOOL_REQUEST, request, "{}");
    ok(after.kind === "tool_response" && after.body.outcome === "done");
    const loose: typeof loop.TOOL_REQUEST = { ...loop.TOOL_REQUEST, uploadMaxBytes: 2_000_000 };
    const long = await call(world.path(LOOP), loose, { ...request, call: newCall() }, {
      upload: new Uint8Array(600_000),
    });
    ok(!long.ok && long.code === "frame-too-large");
  }));
