// `grants check`, `grants list` and `grants explain`: what is allowed, and why something is not.
import { SessionId, ToolName } from "../../shared/ids/ids.ts";
import { DataClass } from "../../shared/labels/label.ts";
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

const EXPLAIN = "grants explain TOOL [ARGUMENTS-AS-JSON] [--session ID] [--class C] [--untrusted]";

export const GRANTS: Command = {
  usage: `grants check | grants list | ${EXPLAIN}  [--json]`,
  summary: "what the grant files allow, what is wrong with them, and why a call is refused",
  run(context, args) {
    const [verb, ...rest] = args;
    if (verb === "explain") return explain(context, rest, EXPLAIN);
    if ((verb === "check" || verb === "list") && rest.length === 0) {
      return list(context, verb === "check");
    }
    return Promise.resolve(fail(context, err("usage", `usage: bxctl ${this.usage}`)));
  },
};
