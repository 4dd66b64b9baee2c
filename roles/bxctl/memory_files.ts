// `memory ...`: what was written to memory and by whom; undo, review of staged edits, purge.
import { isoTime } from "../../shared/clock/clock.ts";
import { CallId, SessionId } from "../../shared/ids/ids.ts";
import { err } from "../../shared/results/result.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import {
  MEMORY_LOG,
  MEMORY_OVERVIEW,
  MEMORY_PURGE,
  MEMORY_REVIEW,
  MEMORY_SHOW,
  MEMORY_STAGED,
  MEMORY_STATUS,
  MEMORY_UNDO,
} from "../../shared/wire/memory.ts";
import {
  ask,
  askAndPrint,
  askText,
  type Command,
  type Context,
  EXIT_OK,
  fail,
  misused,
  parseWords,
  print,
  wholeNumber,
} from "./context.ts";
import { shown, shownLines, table } from "./terminal.ts";

const SOCKET = "owner-memory/admin";

/** One subcommand; gets the words after its name. */
type Part = (context: Context, args: readonly string[], usage: string) => Promise<number>;

const log: Part = async (context, args, usage) => {
  const words = parseWords(args, { number: { type: "string", short: "n" } }, usage);
  if (!words.ok) return fail(context, words);
  const limit = wholeNumber(words.value.values.number, 20, 1, 200);
  if (!limit.ok) return fail(context, limit);
  return await askAndPrint(
    context,
    SOCKET,
    MEMORY_LOG,
    { limit: limit.value },
    ({ lines }) =>
      table(lines.map((line) => [
        String(line.n),
        isoTime(line.time_unix_ms),
        [line.kind, line.action].filter((word) => word !== null).join(" "),
        line.file ?? "",
        line.session ?? "",
      ])),
  );
};

const show: Part = async (context, args, usage) => {
  const n = wholeNumber(args[0], -1, 0, 999_999_999);
  if (!n.ok || args.length !== 1) return misused(context, usage);
  const got = await askText(context, SOCKET, MEMORY_SHOW, { n: n.value });
  return got.ok ? printFields(context, got.value.text) : fail(context, got);
};

const undo: Part = async (context, [word = "", ...more], usage) => {
  const file = word.replace(/\.md$/, "");
  if ((file !== "memory" && file !== "user") || more.length > 0) return misused(context, usage);
  return await askAndPrint(
    context,
    SOCKET,
    MEMORY_UNDO,
    { file },
    ({ characters, limit }) =>
      `${file}.md is as before its latest edit (${characters} of ${limit} characters); ` +
      "the next session sees it\n",
  );
};

const review: Part = async (context, [word, decision, ...more], usage) => {
  if (word === undefined) return await waiting(context);
  const call = CallId.safeParse(word);
  if (!call.success || more.length > 0) return misused(context, usage);
  if (decision === undefined) {
    const got = await askText(context, SOCKET, MEMORY_STAGED, { call: call.data });
    return got.ok ? printFields(context, got.value.text) : fail(context, got);
  }
  if (decision !== "apply" && decision !== "drop") return misused(context, usage);
  const reply = await ask(context, SOCKET, MEMORY_REVIEW, { call: call.data, decision });
  if (!reply.ok) return fail(context, reply);
  const said = decision === "apply" ? "applied; the next session sees it" : "dropped";
  return print(context, { call: call.data, decision }, `${said}\n`);
};

async function waiting(context: Context): Promise<number> {
  return await askAndPrint(context, SOCKET, MEMORY_STAGED, { call: null }, ({ staged }) => {
    const rows = staged.map((one) => [
      one.call,
      isoTime(one.time_unix_ms),
      `${one.action} ${one.file}.md`,
      one.session,
    ]);
    return rows.length === 0 ? "No edit waits for review\n" : table(rows);
  });
}

const purge: Part = async (context, args, usage) => {
  const words = parseWords(args, {
    source: { type: "string" },
    why: { type: "string" },
    yes: { type: "boolean" },
  }, usage);
  if (!words.ok) return fail(context, words);
  const { source, why = "", yes } = words.value.values;
  const session = SessionId.safeParse(source);
  if (!session.success) return misused(context, usage);
  const request = { session: session.data, why: why.slice(0, 500) };
  const mode = yes === true ? "hide" : "list";
  const got = await askText(context, SOCKET, MEMORY_PURGE, { ...request, mode });
  if (!got.ok) return fail(context, got);
  const { entries, notes } = got.value.reply.body;
  const parsed = parseJson(got.value.text);
  if (context.wantsJson) {
    const body = { ...got.value.reply.body, brought: parsed.ok ? parsed.value : null };
    return print(context, body, "");
  }
  printFields(context, got.value.text);
  const what = `${entries} entries, ${notes} notes and all that was said in ${session.data}`;
  context.terminal.out(
    mode === "hide" ? `Hidden for good: ${what}\n` : `Would hide ${what}; add --yes to do it\n`,
  );
  return EXIT_OK;
};

const status: Part = async (context, args, usage) => {
  if (args.length > 0) return misused(context, usage);
  const files = await ask(context, SOCKET, MEMORY_STATUS, {});
  if (!files.ok) return fail(context, files);
  const seen = await ask(context, SOCKET, MEMORY_OVERVIEW, {});
  if (!seen.ok) return fail(context, seen);
  const { body } = seen.value;
  const { version: _version, started_unix_ms: _started, ...about } = files.value.body;
  const sizes = about.files.map((one) => [one.file, `${one.characters} of ${one.limit}`]);
  const problems = about.problems.map((one) => `${shown(`${one.code}: ${one.detail}`)}\n`);
  const found = body.found.slice(0, 10)
    .map((one) => [one.source, `${one.hits} times`, isoTime(one.last_unix_ms)]);
  const text = `${table(sizes)}${shown(about.summary)}\n${problems.join("")}` +
    `${body.staged} edits wait for review, ${body.purged_sessions} sessions are purged\n` +
    `${body.recalls} recalls, ${body.in_vain} found nothing; found most often:\n${table(found)}`;
  return print(context, { ...about, ...body }, text);
};

/** Prints an object's fields one under the other, texts as they are, the rest as JSON. */
function printFields(context: Context, text: string): number {
  const parsed = parseJson(text);
  const value = parsed.ok ? parsed.value : null;
  if (typeof value !== "object" || value === null) return fail(context, err("not-json", text));
  const lines = Object.entries(value).filter(([, field]) => field !== null).map(([key, field]) => {
    if (key === "time_unix_ms") return `time:\n  ${isoTime(Number(field))}\n`;
    const said = typeof field === "string" ? field : JSON.stringify(field, null, 2);
    return `${shown(key)}:\n  ${shownLines(said).replaceAll("\n", "\n  ")}\n`;
  });
  return print(context, value, lines.join(""));
}

const PARTS: Readonly<Record<string, Part>> = { log, show, undo, review, purge, status };

export const MEMORY: Command = {
  usage: "memory log [-n COUNT] | show NUMBER | undo memory|user | review [CALL [apply|drop]] | " +
    "purge --source SESSION [--why TEXT] [--yes] | status [--json]",
  summary: "what was written to memory and by whom; undo, review, purge",
  async run(context, [name = "", ...args]) {
    const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (part === undefined) return misused(context, this.usage);
    return await part(context, args, this.usage);
  },
};
