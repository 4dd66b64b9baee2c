// `sessions list`, `sessions show` and `session verify`: past conversations, as they were logged.
import { SessionId } from "../../shared/ids/ids.ts";
import { isoTime } from "../../shared/clock/clock.ts";
import { labelText } from "../../shared/labels/label.ts";
import { err } from "../../shared/results/result.ts";
import { parseSessionRecord, type SessionRecord } from "../../shared/session_log/records.ts";
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
import { recordView } from "./record_view.ts";
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

/** A record for a person; what is not part of a conversation is left to --json. */
function renderRecord({ terminal }: Context, stored: unknown): string {
  const record = parseSessionRecord(stored);
  if (!record.ok) return `${tint(terminal, "red", "unreadable or unknown record")}\n`;
  const view = recordView(record.value);
  if (view === null) return "";
  const texts = view.texts.filter((text) => text !== "")
    .map((text) => `${shownLines(text).replace(/^/gm, "  ")}\n`);
  return `${tint(terminal, "bold", view.head)}\n${texts.join("")}`;
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
const AT = { epoch: WORD };
const show = form(SHOW, [1, 1], AT, async (context, { values, positionals: [id] }) => {
  const got = await logOf(context, id, values.epoch, SHOW);
  if (!got.ok) return fail(context, got);
  const records = storedRecords(got.value.text);
  const text = records.map((record) => renderRecord(context, record)).join("");
  return print(context, { ...got.value.reply.body, records }, text);
});

/** The session's page on standard output; launch/serve leads it into the file that is named. */
const EXPORT = "sessions export ID [--epoch N] --html FILE|-";
const TO = { html: WORD, ...AT };
const exported = form(EXPORT, [1, 1], TO, async (context, { values, positionals: [id = ""] }) => {
  if (!values.html || context.wantsJson) return misused(context, EXPORT);
  const got = await logOf(context, id, values.epoch, EXPORT);
  if (!got.ok) return fail(context, got);
  const records: SessionRecord[] = [];
  for (const stored of storedRecords(got.value.text)) {
    const record = parseSessionRecord(stored);
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
