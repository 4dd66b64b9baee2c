// `grants check`, `list`, `explain` and `new`: what is allowed, why something is not, and a file to
// begin a grant with. bxctl writes no file: what it prints counts once the owner has saved it.
import { SessionId, ToolName } from "../../shared/ids/ids.ts";
import { DataClass } from "../../shared/labels/label.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import { err } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { GRANTS_CHECK, GRANTS_EXPLAIN, type GrantSummary } from "../../shared/wire/broker_owner.ts";
import {
  ask,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  parseWords,
  print,
} from "./context.ts";
import { shown, table, tint } from "./terminal.ts";

const SOCKET = "owner-broker/admin";

function rowOf(grant: GrantSummary): string[] {
  const expires = grant.expires_unix_ms === null
    ? "never expires"
    : `expires ${new Date(grant.expires_unix_ms).toISOString()}`;
  const where = grant.is_built_in ? "built in" : expires;
  return [
    grant.tool ?? "?",
    grant.mode ?? "?",
    `up to ${grant.max_taint ?? "?"}`,
    where,
    grant.name,
  ];
}

async function list(context: Context, isCheck: boolean): Promise<number> {
  const reply = await ask(context, SOCKET, GRANTS_CHECK, {});
  if (!reply.ok) return fail(context, reply);
  const { items } = reply.value.body;
  const broken = items.filter((grant) => grant.problems.length > 0);
  const good = items.filter((grant) => grant.problems.length === 0);
  const problems = broken.map((grant) => {
    const lines = grant.problems.map((problem) => `  ${shown(problem)}\n`).join("");
    return `${tint(context.terminal, "red", "does not count")} ${shown(grant.name)}\n${lines}`;
  }).join("");
  const verdict = broken.length === 0
    ? `${good.length} grants, no problem\n`
    : `${good.length} grants count, ${broken.length} files do not\n`;
  print(context, { grants: items }, () => {
    const listed = isCheck ? "" : table(good.map(rowOf));
    return listed + problems + (isCheck ? verdict : "");
  });
  return broken.length === 0 ? EXIT_OK : EXIT_FAILED;
}

async function explain(context: Context, args: readonly string[], usage: string): Promise<number> {
  const words = parseWords(args, {
    session: { type: "string" },
    class: { type: "string" },
    untrusted: { type: "boolean" },
  }, usage);
  if (!words.ok) return fail(context, words);
  const { values, positionals } = words.value;
  const tool = ToolName.safeParse(positionals[0]);
  const session = SessionId.nullable().safeParse(values.session ?? null);
  const dataClass = DataClass.safeParse(values.class ?? "private");
  if (!tool.success || !session.success || !dataClass.success || positionals.length > 2) {
    return fail(context, err("usage", `usage: bxctl ${usage}`));
  }
  const reply = await ask(context, SOCKET, GRANTS_EXPLAIN, {
    tool: tool.data,
    session: session.data,
    label: { class: dataClass.data, untrusted: values.untrusted === true },
  }, { upload: encodeUtf8(positionals[1] ?? "{}") });
  if (!reply.ok) return fail(context, reply);
  const { verdict, code, lines } = reply.value.body;
  return print(
    context,
    reply.value.body,
    () => `${verdict} (${shown(code)})\n${lines.map((line) => `  ${shown(line)}\n`).join("")}`,
  );
}

/** A whole grant file with a word on each key; strict until the owner says otherwise. */
function draft(context: Context, args: readonly string[], usage: string): number {
  const words = parseWords(args, {
    mode: { type: "string" },
    path: { type: "string", multiple: true },
    host: { type: "string", multiple: true },
    write: { type: "boolean" },
    class: { type: "string" },
  }, usage);
  if (!words.ok) return fail(context, words);
  const { values, positionals } = words.value;
  const tool = ToolName.safeParse(positionals[0]);
  const mode = values.mode ?? "ask";
  const highest = DataClass.safeParse(values.class ?? "private");
  const isKnown = mode === "auto" || mode === "ask" || mode === "deny";
  const isClean = [...values.path ?? [], ...values.host ?? []].every((one) => isPlainText(one));
  if (!tool.success || !highest.success || !isKnown || !isClean || positionals.length > 1) {
    return fail(context, err("usage", `usage: bxctl ${usage}`));
  }
  const lines: (readonly [line: string, why: string] | null)[] = [
    [`tool = "${tool.data}"`, "one tool, by its name"],
    [`mode = "${mode}"`, "auto: runs unasked; ask: you are asked each time; deny: never"],
    values.path
      ? [
        `paths = ${JSON.stringify(values.path)}`,
        "these and all below them, inside a root of brokerd.toml",
      ]
      : null,
    values.host
      ? [`hosts = ${JSON.stringify(values.host)}`, "exactly these, each as https://name:port"]
      : null,
    ...(mode === "deny" ? [] : [
      values.write ? ["write = true", "the paths may be changed"] as const : null,
      [`max_taint = "${highest.data}"`, "the most confidential session that may call it"] as const,
      [`result_class = "${highest.data}"`, "how confidential its result is"] as const,
      [
        "untrusted = true",
        "its result is a stranger's word; false only for what you wrote",
      ] as const,
      [
        'when_untrusted = "ask"',
        "once a session has read a stranger's words: ask, or deny",
      ] as const,
    ]),
  ];
  const kept = lines.filter((line) => line !== null);
  const text = kept.map(([line, why]) => `# ${why}\n${line}\n`).join("");
  context.terminal.out(text);
  context.terminal.err(
    `Read every line, save it as ${context.home}/grants/${tool.data}.toml, then: bxctl grants check\n`,
  );
  return EXIT_OK;
}

const NEW =
  "grants new TOOL [--mode auto|ask|deny] [--path FOLDER]... [--write] [--host ORIGIN]... [--class C]";
const EXPLAIN = "grants explain TOOL [ARGUMENTS-AS-JSON] [--session ID] [--class C] [--untrusted]";

export const GRANTS: Command = {
  usage: `grants check | grants list | ${EXPLAIN}  [--json] | ${NEW}`,
  summary: "what the grant files allow, what is wrong with them, and why a call is refused",
  run(context, args) {
    const [verb, ...rest] = args;
    if (verb === "new") return Promise.resolve(draft(context, rest, NEW));
    if (verb === "explain") return explain(context, rest, EXPLAIN);
    if ((verb === "check" || verb === "list") && rest.length === 0) {
      return list(context, verb === "check");
    }
    return Promise.resolve(fail(context, err("usage", `usage: bxctl ${this.usage}`)));
  },
};
