// `sessions list`, `sessions show` and `session verify`: past conversations, as they were logged.
import { SessionId } from "../../shared/ids/ids.ts";
import { isoTime } from "../../shared/clock/clock.ts";
import { labelText } from "../../shared/labels/label.ts";
import { assertNever, err } from "../../shared/results/result.ts";
import { parseSessionRecord, type SessionRecord } from "../../shared/session_log/records.ts";
import { parseCanonicalText } from "../../shared/wire/codec.ts";
import {
  SESSION_LOG,
  SESSION_VERIFY,
  SESSIONS_LIST,
  type SessionSummary,
} from "../../shared/wire/loop.ts";
import {
  ask,
  askText,
  type Command,
  type Context,
  COUNT,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  form,
  misused,
  print,
  storedRecords,
  wholeNumber,
  WORD,
} from "./context.ts";
import { sessionPage } from "./session_page.ts";
import { shown, shownLines, table, tint } from "./terminal.ts";

const SOCKET = "owner-loop/admin";

function rowOf(one: SessionSummary): string[] {
  const turns = `${one.turns} turns`;
  return [one.session, isoTime(one.started_unix_ms), turns, labelText(one.label), one.state];
}

const LIST = "sessions list [-n COUNT] [--before ID]";
const PAGE = { number: COUNT, before: WORD };
const list = form(LIST, [0, 0], PAGE, async (context, { values }) => {
  const limit = wholeNumber(values.number, 20, 1, 200);
  if (!limit.ok) return fail(context, limit);
  const before = SessionId.nullable().safeParse(values.before ?? null);
  if (!before.success) return fail(context, err("usage", "--before takes a session's id"));
  const asked = { before: before.data, limit: limit.value };
  const reply = await ask(context, SOCKET, SESSIONS_LIST, asked);
  if (!reply.ok) return fail(context, reply);
  const { items } = reply.value.body;
  const text = items.length === 0 ? "No session yet\n" : table(items.map(rowOf));
  return print(context, { sessions: items }, text);
});

/** A log line for a person; what is not a record of a conversation is left to --json. */
function renderRecord(context: Context, line: string): string {
  const parsed = parseCanonicalText(line);
  if (!parsed.ok) return `${tint(context.terminal, "red", "unreadable line")}\n`;
  const record = parseSessionRecord(parsed.value);
  if (!record.ok) return `${tint(context.terminal, "red", "unknown record")}\n`;
  const head = (who: string) => tint(context.terminal, "bold", who) + "\n";
  const body = (text: string) => `${shownLines(text).replace(/^/gm, "  ")}\n`;
  const one = record.value;
  switch (one.kind) {
    case "user":
      return head(`${isoTime(one.time_unix_ms)} owner`) + body(one.content);
    case "assistant": {
      const calls = one.tool_calls.map((c) => `  calls ${shown(c.name)} ${shown(c.arguments)}\n`);
      return head(`${isoTime(one.time_unix_ms)} assistant`) +
        (one.content === "" ? "" : body(one.content)) + calls.join("");
    }
    case "tool_result": {
      const how = one.code === null ? one.outcome : `${one.outcome}, ${one.code}`;
      const who = `${isoTime(one.time_unix_ms)} ${one.tool} (${how}, ${labelText(one)})`;
      return head(who) + body(one.content);
    }
    case "label":
      return `  label from here on: ${labelText(one)}: ${shown(one.why)}\n`;
    case "notice":
      return head(`${isoTime(one.time_unix_ms)} notice ${one.code}`) + body(one.text);
    case "cache_loss":
      return `  reused ${one.reused} of ${one.expected} tokens (${shown(one.guess)})\n`;
    case "open":
    case "tool_summary":
    case "turn_end":
    case "epoch_end":
      return "";
    default:
      return assertNever(one);
  }
}

/** The log of the session that the words name. */
async function logOf(context: Context, id = "", at: string | undefined, usage: string) {
  const session = SessionId.safeParse(id);
  if (!session.success) return err("usage", `usage: bxctl ${usage}`);
  const epoch = wholeNumber(at, -1, 0, 1_000_000);
  if (!epoch.ok) return epoch;
  const asked = { session: session.data, epoch: at === undefined ? null : epoch.value };
  return await askText(context, SOCKET, SESSION_LOG, asked);
}

const SHOW = "sessions show ID [--epoch N]";
const show = form(
  SHOW,
  [1, 1],
  { epoch: WORD },
  async (context, { values, positionals }, usage) => {
    const got = await logOf(context, positionals[0], values.epoch, usage);
    if (!got.ok) return fail(context, got);
    const { lines, records } = storedRecords(got.value.text);
    const text = lines.map((line) => renderRecord(context, line)).join("");
    return print(context, { ...got.value.reply.body, records }, text);
  },
);

/** The session's page on standard output; launch/serve leads it into the file that is named. */
const EXPORT = "sessions export ID [--epoch N] --html FILE|-";
const TO = { html: WORD, epoch: WORD };
const exported = form(EXPORT, [1, 1], TO, async (context, { values, positionals: [id = ""] }) => {
  if (!values.html || context.wantsJson) return misused(context, EXPORT);
  const got = await logOf(context, id, values.epoch, EXPORT);
  if (!got.ok) return fail(context, got);
  const records: SessionRecord[] = [];
  for (const line of got.value.text.split("\n").slice(0, -1)) {
    const value = parseCanonicalText(line);
    const record = value.ok ? parseSessionRecord(value.value) : value;
    if (!record.ok) return fail(context, err("session-damaged", record.detail));
    records.push(record.value);
  }
  context.terminal.out(sessionPage(id, got.value.reply.body.epoch, records));
  return EXIT_OK;
});

const verify = form("sessions verify ID", [1, 1], {}, async (context, { positionals }, usage) => {
  const session = SessionId.safeParse(positionals[0]);
  if (!session.success) return misused(context, usage);
  const reply = await ask(context, SOCKET, SESSION_VERIFY, { session: session.data });
  if (!reply.ok) return fail(context, reply);
  const found = reply.value.body;
  const verdict = found.is_whole ? "whole" : "NOT WHOLE";
  print(context, found, `${verdict}: ${found.records} records; ${shown(found.finding)}\n`);
  return found.is_whole ? EXIT_OK : EXIT_FAILED;
});

export const SESSIONS: Command = {
  summary: "past conversations, one in full or as a page, and whether its log is whole",
  forms: { list, show, verify, export: exported },
};
