// Guards: "chat streams, shows progress and questions in place; leaving or a restart of loopd loses
// nothing; a reply is acknowledged only after it was printed".
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { err, ok } from "../../shared/results/result.ts";
import { ApprovalId, CallId, type MessageId, SessionId, TurnId } from "../../shared/ids/ids.ts";
import { decodeLossy, encodeUtf8 } from "../../shared/wire/codec.ts";
import { APPROVAL_ANSWER, APPROVAL_SHOW } from "../../shared/wire/broker_owner.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import {
  LOOP_WATCH,
  OUTBOX_ACK,
  OUTBOX_FETCH,
  TURN_CANCEL,
  TURN_SUBMIT,
} from "../../shared/wire/loop.ts";
import { fakeTerminal, type OwnerRig, ownerRig } from "../../tests/doubles/house/owner_rig.ts";

type Event = Said<typeof LOOP_WATCH["events"][number]>;
const ULID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";
const turn = TurnId.parse(`t-${ULID}`);
const approval = ApprovalId.parse(`a-${ULID}`);

/** loopd as a test plays it: what was said to it, and what it will tell. */
interface FakeLoop {
  readonly heard: string[];
  readonly acked: number[];
  session: SessionId | null;
  messageId: MessageId | null;
  tell(event: Event): void;
  reply(n: number, text: string, kind?: "reply" | "notice"): void;
  routes(): Route[];
}

function fakeLoop(): FakeLoop {
  const told: Event[] = [];
  const texts = new Map<number, { event: Event; text: string }>();
  const self: FakeLoop = {
    heard: [],
    acked: [],
    session: null,
    messageId: null,
    tell(event) {
      told.push(event);
    },
    reply(n, text, kind = "reply") {
      const session = self.session ?? SessionId.parse(`chat-${ULID}`);
      const event: Event = {
        kind: "outbox_item",
        body: {
          n,
          session,
          turn,
          message_id: self.messageId,
          kind,
          code: kind === "notice" ? "model-unreachable" : null,
          label: { class: "private", untrusted: false },
          created_unix_ms: 0,
          bytes: text.length,
        },
      };
      texts.set(n, { event, text });
      self.tell(event);
    },
    routes: () => [
      on(TURN_SUBMIT, (body, io) => {
        self.heard.push(decodeLossy(io.upload));
        self.session = body.session;
        self.messageId = body.message_id;
        return ok({
          kind: "turn_accepted",
          body: { session: body.session, turn, is_duplicate: false },
        });
      }),
      on(TURN_CANCEL, () => {
        self.heard.push("(cancel)");
        return ok({ kind: "turn_cancelled", body: { turn } });
      }),
      on(LOOP_WATCH, async (_body, io) => {
        while (!io.signal.aborted) {
          const event = told.shift();
          if (event !== undefined) await io.event(event);
          else await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return ok({ kind: "watch_end", body: { why: "stopping" } });
      }),
      on(OUTBOX_FETCH, async (body, io) => {
        const item = texts.get(body.n);
        if (item === undefined || item.event.kind !== "outbox_item") {
          return err("not-found", "No such item");
        }
        await io.chunk(encodeUtf8(item.text));
        return ok(item.event);
      }),
      on(OUTBOX_ACK, (body) => {
        self.acked.push(body.n);
        return ok({ kind: "ok", body: {} });
      }),
    ],
  };
  return self;
}

function stateEvent(loop: FakeLoop, asked: boolean): Event {
  return {
    kind: "turn_state",
    body: {
      session: loop.session ?? SessionId.parse(`chat-${ULID}`),
      turn,
      state: asked ? "waiting_approval" : "reading",
      place: null,
      percent: asked ? null : 41,
      tool: asked ? "read_file" : null,
      call: asked ? CallId.parse(`c-${ULID}`) : null,
      approval: asked ? approval : null,
    },
  };
}

async function until(isTrueYet: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !isTrueYet(); i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  isTrue(isTrueYet());
}

async function serveApproval(rig: OwnerRig, answered: string[]): Promise<void> {
  await rig.serve("owner-broker/admin", [
    on(APPROVAL_SHOW, async (body, io) => {
      await io.chunk(encodeUtf8("read_file /srv/plan.txt"));
      const summary = {
        approval: body.approval,
        session: SessionId.parse(`chat-${ULID}`),
        call: CallId.parse(`c-${ULID}`),
        tool: "read_file",
        state: "pending" as const,
        created_unix_ms: 0,
        expires_unix_ms: 4_000_000_000_000,
        approver: "any" as const,
      };
      return ok({ kind: "approval", body: { summary, code: "k7m2" } });
    }),
    on(APPROVAL_ANSWER, (body) => {
      answered.push(`${body.answer} ${body.code}`);
      return ok({
        kind: "approval_answered",
        body: { outcome: "approved", approval, tool: "read_file" },
      });
    }),
  ]);
}

Deno.test("chat -m shows a model's escape sequences as text and acknowledges after printing", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  await rig.serve("owner-loop/admin", loop.routes());
  const running = rig.run(["chat", "-m", "hello"]);
  await until(() => loop.heard.length === 1);
  loop.reply(4, "\x1b[2Jhi \u202e there");
  const ran = await running;
  strictEqual(ran.out, "\\u{1b}[2Jhi \\u{202e} there\n");
  strictEqual(ran.status, 0);
  deepStrictEqual(loop.heard, ["hello"]);
  deepStrictEqual(loop.acked, [4]);
});

Deno.test("chat -m fails with the notice's code when the turn could not go on", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  await rig.serve("owner-loop/admin", loop.routes());
  const running = rig.run(["chat", "-m", "hello", "--json"]);
  await until(() => loop.heard.length === 1);
  loop.reply(0, "The model server does not answer", "notice");
  const ran = await running;
  strictEqual(ran.status, 1);
  strictEqual(JSON.parse(ran.out).code, "model-unreachable");
});

Deno.test("chat waits for loopd's return and then shows the reply once", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  await rig.serve("owner-loop/admin", loop.routes());
  const running = rig.run(["chat", "-m", "hello"]);
  await until(() => loop.heard.length === 1);
  await rig.stopServing("owner-loop/admin");
  await rig.serve("owner-loop/admin", loop.routes());
  loop.reply(1, "back again");
  const ran = await running;
  strictEqual(ran.out, "back again\n");
  match(ran.err, /loopd is away/);
  deepStrictEqual(loop.acked, [1]);
});

Deno.test("chat on a terminal streams, and does not print the same reply twice", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  await rig.serve("owner-loop/admin", loop.routes());
  const terminal = fakeTerminal(true);
  const running = rig.run(["chat"], terminal);
  terminal.type("hello");
  await until(() => loop.session !== null);
  loop.tell(stateEvent(loop, false));
  for (const text of ["Good ", "day"]) {
    const session = loop.session ?? SessionId.parse(`chat-${ULID}`);
    loop.tell({ kind: "turn_delta", body: { session, turn, channel: "answer", text } });
  }
  loop.reply(0, "Good day");
  await until(() => loop.acked.length === 1);
  terminal.type("/cancel");
  await until(() => loop.heard.includes("(cancel)"));
  terminal.type("/quit");
  const ran = await running;
  strictEqual(ran.out, "Good day\n");
  match(ran.err, /reading 41 %/);
});

Deno.test("chat shows a question in full and sends the answer that was typed", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  const answered: string[] = [];
  await rig.serve("owner-loop/admin", loop.routes());
  await serveApproval(rig, answered);
  const terminal = fakeTerminal(true);
  const running = rig.run(["chat", "-m", "read it"], terminal);
  await until(() => loop.heard.length === 1);
  loop.tell(stateEvent(loop, true));
  await until(() => terminal.printed.err.includes("type approve or deny"));
  terminal.type("approve");
  await until(() => answered.length === 1);
  loop.reply(0, "It says: go");
  const ran = await running;
  match(ran.err, /read_file \/srv\/plan\.txt/);
  deepStrictEqual(answered, ["approve k7m2"]);
  strictEqual(ran.out, "It says: go\n");
});

Deno.test("chat without a terminal says how to answer a question and waits", async () => {
  await using rig = await ownerRig();
  const loop = fakeLoop();
  await rig.serve("owner-loop/admin", loop.routes());
  await serveApproval(rig, []);
  const running = rig.run(["chat", "-m", "read it"]);
  await until(() => loop.heard.length === 1);
  loop.tell(stateEvent(loop, true));
  loop.reply(0, "It was denied");
  match((await running).err, /bxctl approve k7m2, or bxctl deny k7m2/);
});
