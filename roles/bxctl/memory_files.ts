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
import { UnixMs } from "../../shared/wire/parts.ts";
import {
  ask,
  askAndPrint,
  askText,
  type Command,
  type Context,
  COUNT,
  EXIT_OK,
  fail,
  FLAG,
  form,
  misused,
  print,
  wholeNumber,
  WORD,
} from "./context.ts";
import { shown, shownLines, table } from "./terminal.ts";

const SOCKET = "owner-memory/admin";

const log = form("memory log [-n COUNT]", [0, 0], { number: COUNT }, async (context, words) => {
  const limit = wholeNumber(words.values.number, 20, 1, 200);
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
});

const show = form("memory show NUMBER", [1, 1], {}, async (context, { positionals }) => {
  const n = wholeNumber(positionals[0], 0, 0, 999_999_999);
  if (!n.ok) return fail(context, n);
  const got = await askText(context, SOCKET, MEMORY_SHOW, { n: n.value });
  return got.ok ? printFields(context, got.value.text) : fail(context, got);
});

const undo = form("memory undo memory|user", [1, 1], {}, async (context, words, usage) => {
  const file = words.positionals[0]?.replace(/\.md$/, "");
  if (file !== "memory" && file !== "user") return misused(context, usage);
  return await askAndPrint(
    context,
    SOCKET,
    MEMORY_UNDO,
    { file },
    ({ characters, limit }) =>
      `${file}.md is as before its latest edit (${characters} of ${limit} characters); ` +
      "the next session sees it\n",
  );
});

const REVIEW = "memory review [CALL [apply|drop]]";
const review = form(
  REVIEW,
  [0, 2],
  {},
  async (context, { positionals: [word, decision] }, usage) => {
    if (word === undefined) return await waiting(context);
    const call = CallId.safeParse(word);
    if (!call.success) return misused(context, usage);
    if (decision === undefined) {
      const got = await askText(context, SOCKET, MEMORY_STAGED, { call: call.data });
      return got.ok ? printFields(context, got.value.text) : fail(context, got);
    }
    if (decision !== "apply" && decision !== "drop") return misused(context, usage);
    const reply = await ask(context, SOCKET, MEMORY_REVIEW, { call: call.data, decision });
    if (!reply.ok) return fail(context, reply);
    const said = decision === "apply" ? "applied; the next session sees it" : "dropped";
    return print(context, { call: call.data, decision }, `${said}\n`);
  },
);

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

const PURGE = "memory purge --source SESSION [--why TEXT] [--yes]";
const WHAT = { source: WORD, why: WORD, yes: FLAG };
const purge = form(PURGE, [0, 0], WHAT, async (context, { values }, usage) => {
  const { source, why = "", yes } = values;
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
});

const status = form("memory status", [0, 0], {}, async (context) => {
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
});

/** Prints an object's fields one under the other, texts as they are, the rest as JSON. */
function printFields(context: Context, text: string): number {
  const parsed = parseJson(text);
  const value = parsed.ok ? parsed.value : null;
  if (typeof value !== "object" || value === null) return fail(context, err("not-json", text));
  const lines = Object.entries(value).filter(([, field]) => field !== null).map(([key, field]) => {
    const time = UnixMs.safeParse(field);
    if (key === "time_unix_ms" && time.success) return `time:\n  ${isoTime(time.data)}\n`;
    const said = typeof field === "string" ? field : JSON.stringify(field, null, 2);
    return `${shown(key)}:\n  ${shownLines(said).replaceAll("\n", "\n  ")}\n`;
  });
  return print(context, value, lines.join(""));
}

export const MEMORY: Command = {
  summary: "what was written to memory and by whom; undo, review, purge",
  forms: { log, show, undo, review, purge, status },
};
