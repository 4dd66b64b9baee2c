// Guards: "every listing has --json with one error shape; stored text is escaped before it touches a
// terminal". Every command that the table holds is run against roles that answer by the wire's own
// schemas, with a hostile text wherever a schema lets any text pass.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { z } from "zod";
import { ok } from "../../shared/results/result.ts";
import { SessionRecord } from "../../shared/session_log/records.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import * as broker from "../../shared/wire/broker_owner.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { AnyExchange, MessageSchema } from "../../shared/wire/exchange.ts";
import * as gateway from "../../shared/wire/gateway_owner.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import * as loop from "../../shared/wire/loop.ts";
import * as memory from "../../shared/wire/memory.ts";
import { fakeTerminal, type OwnerRig, ownerRig } from "../../tests/doubles/house/owner_rig.ts";
import { COMMANDS } from "./commands.ts";

const ULID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";
const EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u0000\r\nforged line \u009b31m \\u{1b}";
const SESSION = `chat-${ULID}`;
const CALL = `c-${ULID}`;

/** Each form of each command; what it asks is answered, and its session and call are the answers'. */
const FORMS: Readonly<Record<keyof typeof COMMANDS, readonly string[][]>> = {
  chat: [["-m", "x", "--session", SESSION]],
  status: [[]],
  doctor: [[]],
  approvals: [[], ["--all"], ["show", `a-${ULID}`]],
  approve: [["abc123"], [EVIL]],
  deny: [["abc123"], [EVIL]],
  stop: [["why"], [EVIL]],
  resume: [[]],
  audit: [["tail"], ["show", "0"], ["verify"], ["verify", "--against", EVIL], ["repair", "--yes"]],
  grants: [
    ["check"],
    ["list"],
    ["explain", "read_file", EVIL],
    ["explain", EVIL],
    ["new", "read_file", "--path", "/a"],
    ["new", "read_file", "--path", "/a", "--draft", `/h/${EVIL}`],
    ["new", EVIL],
  ],
  egress: [["--reach", `gatewayd ${EVIL}`, "--reach", "egressd *"], []],
  recall: [["x"], [EVIL]],
  reindex: [[]],
  memory: [
    ["log"],
    ["show", "0"],
    ["undo", "memory"],
    ["undo", EVIL],
    ["review"],
    ["review", CALL],
    ["review", CALL, "apply"],
    ["purge", "--source", SESSION],
    ["purge", "--source", SESSION, "--yes"],
    ["purge", "--source", EVIL],
    ["status"],
  ],
  secrets: [["set", "key"], ["set", EVIL.slice(0, 30)]],
  sessions: [
    ["list"],
    ["list", "--before", EVIL],
    ["show", SESSION],
    ["show", EVIL],
    ["show", "../../etc/passwd"],
    ["verify", SESSION],
    ["export", SESSION, "--html", "-"],
    ["export", EVIL, "--html", EVIL],
  ],
  prompt: [[]],
  cache: [[], [SESSION], [EVIL]],
  version: [[]],
};

const IDS = [SESSION, CALL, ...["a", "t", "m"].map((kind) => `${kind}-${ULID}`)];
const STRINGS = [EVIL, EVIL.slice(0, 30), ...IDS, "a".repeat(64), "read_file", "abc123", "memory"];

type Shape = Readonly<Record<string, unknown>>;
const isShape = (value: unknown): value is Shape => typeof value === "object" && value !== null;
const shapes = (value: unknown) => Array.isArray(value) ? value.filter(isShape) : [];

/** A value that the JSON Schema allows: as much as may be, or as little. */
function sample(shape: Shape, how: "full" | "bare"): unknown {
  const choices = shapes(shape.anyOf ?? shape.oneOf);
  if (choices.length > 0) {
    const isNone = (one: Shape) => one.type === "null";
    const chosen = choices.find((one) => isNone(one) === (how === "bare")) ?? choices[0];
    return sample(chosen ?? {}, how);
  }
  if ("const" in shape) return shape.const;
  if (Array.isArray(shape.enum)) return shape.enum.at(how === "full" ? 0 : -1);
  const [a] = Array.isArray(shape.type) ? shape.type : [shape.type];
  if (a === "boolean") return how === "full";
  if (a === "integer" || a === "number") return shape[how === "full" ? "maximum" : "minimum"] ?? 0;
  if (a === "array") return how === "full" ? [sample(Object(shape.items), how)] : [];
  if (a === "string") {
    const fits = (one: string) =>
      one.length <= Number(shape.maxLength ?? Infinity) &&
      (typeof shape.pattern !== "string" || new RegExp(shape.pattern, "u").test(one));
    const found = STRINGS.find(fits);
    if (found === undefined) throw new Error(`No text fits ${JSON.stringify(shape)}`);
    return found;
  }
  if (a !== "object") return null;
  const needed = Array.isArray(shape.required) ? shape.required : [];
  return Object.fromEntries(
    Object.entries(Object(shape.properties))
      .filter(([key]) => how === "full" || needed.includes(key))
      .map(([key, one]) => [key, sample(Object(one), how)]),
  );
}

const sampleOf = (schema: z.ZodType, how: "full" | "bare") =>
  sample(z.toJSONSchema(schema, { unrepresentable: "any" }), how);

const isExchange = (value: unknown): value is AnyExchange =>
  isShape(value) && "request" in value && "replies" in value;

/** The text that comes before the reply to a request. */
function textFor(kind: string, how: "full" | "bare"): string {
  if (kind === "audit_tail") {
    return `${JSON.stringify({ v: 1, n: 0, time: EVIL, kind: EVIL, why: EVIL, [EVIL]: EVIL })}\n`;
  }
  if (kind === "session_log") {
    const records = SessionRecord.options.map((one) => sampleOf(one, how));
    return [...records, { kind: "of the future", text: EVIL }].map((one, n) =>
      `${JSON.stringify({ ...Object(one), n, prev: "a".repeat(64) })}\n`
    ).join("") + (how === "full" ? "" : `no JSON ${EVIL}\n`);
  }
  if (kind.startsWith("memory_")) {
    return JSON.stringify({ [EVIL]: EVIL, a: [EVIL], b: null, time_unix_ms: EVIL });
  }
  return EVIL;
}

function routesOf(room: Record<string, unknown>, how: "full" | "bare"): Route[] {
  return Object.values(room).filter(isExchange).map((exchange) => {
    const kind = exchange.request.shape.kind.value;
    return on(exchange, async (_body, io) => {
      const said = (schema: MessageSchema) => {
        const body: unknown = sampleOf(schema.shape.body, how);
        return { kind: schema.shape.kind.value, body };
      };
      for (const event of exchange.events) await io.event(said(event));
      if (kind === "loop_watch") {
        await new Promise<void>((resolve) => io.signal.addEventListener("abort", () => resolve()));
      }
      if (exchange.downloadMaxBytes > 0) await io.chunk(encodeUtf8(textFor(kind, how)));
      const [reply] = exchange.replies;
      if (reply === undefined) throw new Error(kind);
      return ok(said(reply));
    });
  });
}

async function serveAll(rig: OwnerRig, how: "full" | "bare"): Promise<void> {
  await rig.serve("owner-loop/admin", routesOf(loop, how));
  await rig.serve("owner-broker/admin", routesOf(broker, how));
  await rig.serve("owner-memory/admin", routesOf(memory, how));
  await rig.serve("owner-gateway/admin", routesOf(gateway, how));
}

/** What the house or its owner wrote as prose; elsewhere a line of a text begins no line. */
const PROSE = /^(?:chat|approvals show|sessions export|memory purge)/;

function assertHarmless(words: readonly string[], { out, err }: { out: string; err: string }) {
  for (const text of [out, err]) {
    isTrue(isPlainText(text.replaceAll("\n", "")), `${words.join(" ")}: ${text}`);
    isTrue(PROSE.test(words.join(" ")) || !/^forged/m.test(text), `${words.join(" ")}: ${text}`);
  }
}

for (const [name, { forms }] of Object.entries(COMMANDS)) {
  for (const verb of Object.keys(forms)) {
    const isWalked = FORMS[name]?.some(([first = ""]) => verb === "" || first === verb);
    strictEqual(isWalked, true, `No line of this test writes ${name} ${verb}`);
  }
}

for (const how of ["full", "bare"] as const) {
  Deno.test(`every command with a ${how} answer obeys --json and lets no text reach the terminal raw`, async () => {
    await using rig = await ownerRig();
    await serveAll(rig, how);
    for (const [name, forms] of Object.entries(FORMS)) {
      for (const form of forms) {
        // The last word of a turn has to name it; a bare one does not, so a chat would wait for ever.
        if (name === "chat" && how === "bare") continue;
        const words = [name, ...form];
        const typing = () => {
          const terminal = fakeTerminal(false);
          terminal.type("typed");
          return terminal;
        };
        const text = await rig.run(words, typing());
        isTrue(how === "bare" || `${text.out}${text.err}` !== "", words.join(" "));
        assertHarmless(words, text);
        isTrue(!/^(?:internal|frame-)/.test(text.err), `${words.join(" ")}: ${text.err}`);
        const json = await rig.run([...words, "--json"], typing());
        assertHarmless(words, json);
        const lines = json.out.trimEnd().split("\n");
        strictEqual(lines.length, 1, `${words.join(" ")}: ${json.out}`);
        const value = JSON.parse(lines[0] ?? "");
        isTrue(isShape(value) && (json.status !== 2 || isShape(value.error)), words.join(" "));
      }
    }
  });
}

Deno.test("every command without its roles, and every help, obeys --json", async () => {
  await using rig = await ownerRig();
  for (const words of [[], ["help"], ["--help"]]) {
    const ran = await rig.run([...words, "--json"]);
    const { commands } = JSON.parse(ran.out);
    deepStrictEqual(commands.map((one: Shape) => one.name), Object.keys(COMMANDS));
    strictEqual(ran.status, words.length === 0 ? 2 : 0);
  }
  for (const [name, forms] of Object.entries(FORMS)) {
    const help = JSON.parse((await rig.run([name, "--help", "--json"])).out);
    deepStrictEqual(Object.keys(help).sort(), ["name", "summary", "usage"]);
    for (const form of [...forms, ["--no-such-word"]]) {
      const terminal = fakeTerminal(false);
      terminal.type("typed");
      const ran = await rig.run([name, ...form, "--json"], terminal);
      assertHarmless([name, ...form], ran);
      isTrue(isShape(JSON.parse(ran.out)), [name, ...form].join(" "));
    }
  }
});
