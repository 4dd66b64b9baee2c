// `grants check`, `list`, `explain` and `new`: what is allowed, why something is not, and a file to
// begin a grant with. bxctl opens no file: the launcher gives it one beside the grants, under a name
// that brokerd does not read, and what it holds counts once the owner has renamed it.
import { isoTime } from "../../shared/clock/clock.ts";
import { SessionId, ToolName } from "../../shared/ids/ids.ts";
import { DataClass } from "../../shared/labels/label.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { GRANTS_CHECK, GRANTS_EXPLAIN, type GrantSummary } from "../../shared/wire/broker_owner.ts";
import {
  ask,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  FLAG,
  form,
  misused,
  print,
  WORD,
} from "./context.ts";
import { shown, table, tint } from "./terminal.ts";

const SOCKET = "owner-broker/admin";

function rowOf(grant: GrantSummary): string[] {
  const expires = grant.expires_unix_ms === null
    ? "never expires"
    : `expires ${isoTime(grant.expires_unix_ms)}`;
  const where = grant.is_built_in ? "built in" : expires;
  return [
    grant.tool ?? "?",
    grant.mode ?? "?",
    `up to ${grant.max_taint ?? "?"}`,
    where,
    grant.name,
  ];
}

const listing = (verb: "check" | "list") =>
  form(`grants ${verb}`, [0, 0], {}, async (context) => {
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
    const text = verb === "check" ? problems + verdict : table(good.map(rowOf)) + problems;
    print(context, { grants: items }, text);
    return broken.length === 0 ? EXIT_OK : EXIT_FAILED;
  });

const EXPLAIN = "grants explain TOOL [ARGUMENTS-AS-JSON] [--session ID] [--class C] [--untrusted]";
const GIVEN = { session: WORD, class: WORD, untrusted: FLAG };
const explain = form(EXPLAIN, [1, 2], GIVEN, async (context, { values, positionals }) => {
  const tool = ToolName.safeParse(positionals[0]);
  const session = SessionId.nullable().safeParse(values.session ?? null);
  const dataClass = DataClass.safeParse(values.class ?? "private");
  if (!tool.success || !session.success || !dataClass.success) {
    return misused(context, EXPLAIN);
  }
  const reply = await ask(context, SOCKET, GRANTS_EXPLAIN, {
    tool: tool.data,
    session: session.data,
    label: { class: dataClass.data, untrusted: values.untrusted === true },
  }, { upload: encodeUtf8(positionals[1] ?? "{}") });
  if (!reply.ok) return fail(context, reply);
  const { verdict, code, lines } = reply.value.body;
  const text = `${verdict} (${shown(code)})\n${lines.map((line) => `  ${shown(line)}\n`).join("")}`;
  return print(context, reply.value.body, text);
});

type Wanted = {
  readonly tool: string;
  readonly mode: string;
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  readonly write: boolean;
  readonly highest: string;
};

const HOW = "auto: runs unasked; ask: you are asked each time; deny: never";
type Fit = (text: string) => boolean;
const isTool: Fit = (text) => ToolName.safeParse(text).success;
const isMode: Fit = (text) => ["auto", "ask", "deny"].includes(text);
const isClass: Fit = (text) => DataClass.safeParse(text).success;

/** What flags left out is asked for, where somebody can answer; elsewhere the strict word holds. */
async function wanted(
  { terminal }: Context,
  given: { [key in keyof Wanted]?: Wanted[key] | undefined },
): Promise<Wanted | null> {
  let hasLeft = false;
  const one = async (what: string, usual: string, fit: Fit): Promise<string> => {
    for (;;) {
      if (hasLeft || !terminal.isInteractive) return usual;
      terminal.err(usual === "" ? `${what}: ` : `${what} [${usual}]: `);
      const line = await terminal.readLine();
      hasLeft = line === null;
      const answer = line?.trim() || usual;
      if (fit(answer)) return answer;
      if (!hasLeft) terminal.err(`${shown(answer)} will not do.\n`);
    }
  };
  const several = async (what: string): Promise<string[]> => {
    const found: string[] = [];
    for (;;) {
      const answer = await one(`${what}; empty to go on`, "", isPlainText);
      if (answer === "") return found;
      found.push(answer);
    }
  };
  const most = "public, private or secret: the most confidential session that may call it";
  const change = "May it change what lies there, yes or no";
  const tool = given.tool ?? await one("Which tool, by its name", "", isTool);
  const mode = given.mode ?? await one(HOW, "ask", isMode);
  const paths = given.paths ?? await several("A folder or file that it may open");
  const hosts = given.hosts ?? await several("An address that it may reach, as https://name:443");
  const asksWrite = mode !== "deny" && paths.length > 0;
  const write = given.write ??
    (asksWrite && await one(change, "no", (text) => text === "yes" || text === "no") === "yes");
  const highest = given.highest ??
    (mode === "deny" ? "private" : await one(most, "private", isClass));
  return hasLeft || tool === "" ? null : { tool, mode, paths, hosts, write, highest };
}

/** A whole grant file with a word on each key; strict until the owner says otherwise. */
const NEW =
  "grants new [TOOL] [--mode auto|ask|deny] [--path FOLDER]... [--write] [--host ORIGIN]... [--class C]";
const SEVERAL = { ...WORD, multiple: true } as const;
const ANSWERS = { mode: WORD, path: SEVERAL, host: SEVERAL, write: FLAG, class: WORD, draft: WORD };
const draft = form(NEW, [0, 1], ANSWERS, async (context, { values, positionals }) => {
  const { mode, path: paths, host: hosts, write, class: highest } = values;
  const said = [...paths ?? [], ...hosts ?? []].every((one) => isPlainText(one)) &&
    isMode(mode ?? "ask") && isClass(highest ?? "private") &&
    (positionals[0] === undefined || isTool(positionals[0]));
  const asked = { tool: positionals[0], mode, paths, hosts, write, highest };
  const grant = said ? await wanted(context, asked) : null;
  if (grant === null) return misused(context, NEW);
  const text = grantText(grant);
  const { terminal, home } = context;
  const to = `${home}/grants/${grant.tool}.toml`;
  print(context, { file: to, text }, text);
  const draftPath = values.draft;
  terminal.err(
    draftPath === undefined
      ? `Read every line, save it as ${to}, then: bxctl grants check\n`
      : `${text}\nThis lies in ${
        shown(draftPath)
      } and does not count yet. Read every line; if it\n` +
        `says what you mean: mv ${shown(draftPath)} ${to} && bxctl grants check\n`,
  );
  return EXIT_OK;
});

function grantText({ tool, mode, paths, hosts, write, highest }: Wanted): string {
  const isAllowing = mode !== "deny";
  const hasPaths = paths.length > 0;
  const inside = "these and all below them, inside a root of brokerd.toml";
  const strange = "its result is a stranger's word; false only for what you wrote";
  const after = "once a session has read a stranger's words: ask, or deny";
  const lines: [counts: boolean, line: string, why: string][] = [
    [true, `tool = "${tool}"`, "one tool, by its name"],
    [true, `mode = "${mode}"`, HOW],
    [hasPaths, `paths = ${JSON.stringify(paths)}`, inside],
    [hosts.length > 0, `hosts = ${JSON.stringify(hosts)}`, "exactly these"],
    [isAllowing && write, "write = true", "the paths may be changed"],
    [isAllowing, `max_taint = "${highest}"`, "the most confidential session that may call it"],
    [isAllowing, `result_class = "${highest}"`, "how confidential its result is"],
    [isAllowing, "untrusted = true", strange],
    [isAllowing, 'when_untrusted = "ask"', after],
  ];
  return lines.filter(([counts]) => counts).map(([, line, why]) => `# ${why}\n${line}\n`).join("");
}

export const GRANTS: Command = {
  summary: "what the grant files allow, what is wrong with them, and why a call is refused",
  forms: { check: listing("check"), list: listing("list"), explain, new: draft },
};
