// `cache`: what the model server reused of each request of a session, and why it read more when it did.
import { SessionId } from "../../shared/ids/ids.ts";
import { CACHE_REPORT } from "../../shared/wire/loop.ts";
import { askAndPrint, type Command, COUNT, fail, form, misused, wholeNumber } from "./context.ts";
import { table } from "./terminal.ts";

const USAGE = "cache [SESSION] [-n COUNT]";
const report = form(USAGE, [0, 1], { number: COUNT }, async (context, words) => {
  const limit = wholeNumber(words.values.number, 100, 1, 1_000);
  if (!limit.ok) return fail(context, limit);
  const session = SessionId.nullable().safeParse(words.positionals[0] ?? null);
  if (!session.success) return misused(context, USAGE);
  const body = { session: session.data, limit: limit.value };
  return await askAndPrint(context, "owner-loop/admin", CACHE_REPORT, body, (found) => {
    const turns = [...new Set(found.items.map((one) => one.turn))];
    const rows = found.items.map(({ turn, reused, read, expected, cause }) =>
      [turns.indexOf(turn) + 1, reused, read, expected ?? "-", cause].map(String)
    );
    const head = ["turn", "reused", "read anew", "expected", "cause"];
    return `session ${found.session}\n` +
      (rows.length === 0 ? "No request was measured yet\n" : table([head, ...rows]));
  });
});

export const CACHE: Command = {
  summary: "tokens reused, read anew and expected in each request of a session",
  forms: { "": report },
};
