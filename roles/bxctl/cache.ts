// `cache`: what the model server reused of each request of a session, and why it read more when it did.
import { SessionId } from "../../shared/ids/ids.ts";
import { CACHE_REPORT } from "../../shared/wire/loop.ts";
import { askAndPrint, type Command, fail, misused, parseWords, wholeNumber } from "./context.ts";
import { table } from "./terminal.ts";

export const CACHE: Command = {
  usage: "cache [SESSION] [-n COUNT] [--json]",
  summary: "tokens reused, read anew and expected in each request of a session",
  async run(context, args) {
    const words = parseWords(args, { number: { type: "string", short: "n" } }, this.usage, 1);
    if (!words.ok) return fail(context, words);
    const limit = wholeNumber(words.value.values.number, 100, 1, 1_000);
    if (!limit.ok) return fail(context, limit);
    const session = SessionId.nullable().safeParse(words.value.positionals[0] ?? null);
    if (!session.success) return misused(context, this.usage);
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
  },
};
