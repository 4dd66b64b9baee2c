// `audit tail`, `show`, `verify` and `repair`: what was decided and done, and whether the record of it
// is whole.
import { err, type Result } from "../../shared/results/result.ts";
import { AUDIT_REPAIR, AUDIT_TAIL, AUDIT_VERIFY } from "../../shared/wire/broker_owner.ts";
import { AuditHead } from "../../shared/wire/parts.ts";
import {
  ask,
  askText,
  type Command,
  type Context,
  COUNT,
  EXIT_FAILED,
  EXIT_OK,
  fail,
  FLAG,
  form,
  print,
  storedRecords,
  wholeNumber,
  WORD,
} from "./context.ts";
import { progressLine, shown, table, tint } from "./terminal.ts";

const SOCKET = "owner-broker/admin";

const said = (value: unknown) => typeof value === "string" ? value : JSON.stringify(value);

/** One record for a person: number, time, kind, then every other field as escaped JSON. */
function renderRecord({ terminal }: Context, stored: unknown): string {
  const { v: _v, prev: _prev, n, time, kind, ...rest } = fieldsOf(stored);
  if (kind === undefined) {
    return `${tint(terminal, "red", "unreadable")} ${shown(said(rest.unreadable ?? rest))}\n`;
  }
  const fields = Object.entries(rest).map(([key, value]) => `${key}=${said(value)}`);
  const name = tint(terminal, "bold", said(kind));
  return `${shown(`${n}  ${time}`)}  ${name}  ${shown(fields.join("  "))}\n`;
}

function fieldsOf(stored: unknown): Record<string, unknown> {
  return { ...Object(stored) };
}

const tail = form("audit tail [-n COUNT]", [0, 0], { number: COUNT }, async (context, words) => {
  const count = wholeNumber(words.values.number, 20, 1, 10_000);
  if (!count.ok) return fail(context, count);
  const got = await askText(context, SOCKET, AUDIT_TAIL, { count: count.value });
  if (!got.ok) return fail(context, got);
  const records = storedRecords(got.value.text);
  const { head } = got.value.reply.body;
  const text = records.map((record) => renderRecord(context, record)).join("");
  return print(context, { head, records }, text);
});

/** One record, each field on a line of its own and in full. */
const show = form("audit show NUMBER", [1, 1], {}, async (context, { positionals }) => {
  const number = wholeNumber(positionals[0], 0, 0, 999_999_999);
  if (!number.ok) return fail(context, number);
  const end = number.value;
  const got = await askText(context, SOCKET, AUDIT_TAIL, { count: 1, end });
  if (!got.ok) return fail(context, got);
  const record = fieldsOf(storedRecords(got.value.text)[0]);
  if (record.n !== end) return fail(context, err("not-found", `There is no record ${end}`));
  const rows = Object.entries(record).map(([key, value]) => [key, said(value)]);
  return print(context, record, table(rows));
});

function readHead(word: string | undefined): Result<AuditHead | null> {
  if (word === undefined) return { ok: true, value: null };
  const [n, hash] = word.split(":");
  const head = AuditHead.safeParse({ n: Number(n), hash });
  return head.success
    ? { ok: true, value: head.data }
    : err("usage", `${word} is not a head, which is written NUMBER:SHA256`);
}

const VERIFY = "audit verify [--against NUMBER:SHA256]";
const verify = form(VERIFY, [0, 0], { against: WORD }, async (context, { values }) => {
  const against = readHead(values.against);
  if (!against.ok) return fail(context, against);
  const progress = progressLine(context.terminal);
  const reply = await ask(context, SOCKET, AUDIT_VERIFY, { against: against.value }, {
    onEvent: ({ body }) => {
      const percent = Math.floor(100 * body.bytes / Math.max(1, body.total_bytes));
      progress.show(`verifying: ${percent} %, ${body.records} records`);
    },
  });
  progress.clear();
  if (!reply.ok) return fail(context, reply);
  const found = reply.value.body;
  const head = found.head === null ? "" : `\nhead ${found.head.n}:${found.head.hash}`;
  const verdict = found.is_whole
    ? tint(context.terminal, "green", "whole")
    : tint(context.terminal, "red", "NOT WHOLE");
  const counts = `${found.records} records in ${found.files} files`;
  print(context, found, `${verdict}: ${counts}; ${shown(found.finding)}${head}\n`);
  return found.is_whole ? EXIT_OK : EXIT_FAILED;
});

/** Shows what is wrong, asks, and declares exactly that. */
const repair = form("audit repair [--yes]", [0, 0], { yes: FLAG }, async (context, { values }) => {
  const { terminal } = context;
  const found = await ask(context, SOCKET, AUDIT_REPAIR, { finding: null });
  if (!found.ok) return fail(context, found);
  const { finding } = found.value.body;
  if (values.yes !== true) {
    terminal.err(
      `${
        shown(finding)
      }\nThe file is kept as it is, under another name. What was damaged counts as lost; the log\n` +
        "goes on from the head that was acknowledged last, and says so.\n",
    );
    if (!terminal.isInteractive) {
      return fail(
        context,
        err("usage", "To declare it without a terminal: bxctl audit repair --yes"),
      );
    }
    terminal.err("Type yes to declare it lost: ");
    if (await terminal.readLine() !== "yes") return fail(context, err("usage", "Nothing was done"));
  }
  const done = await ask(context, SOCKET, AUDIT_REPAIR, { finding });
  if (!done.ok) return fail(context, done);
  const { is_done, head } = done.value.body;
  if (!is_done) return fail(context, err("audit-broken", "It is not as it was shown; look again"));
  const text = `Declared lost: ${shown(finding)}\nThe log goes on at record ${head?.n ?? 0}\n`;
  return print(context, done.value.body, text);
});

export const AUDIT: Command = {
  summary: "the record of every decision and effect, and whether it is whole",
  forms: { tail, show, verify, repair },
};
