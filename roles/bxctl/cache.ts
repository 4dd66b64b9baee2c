// `cache`: what the model server reused of each request of a session, and why it read more when it did.
import { SessionId } from "../../shared/ids/ids.ts";
import { err } from "../../shared/results/result.ts";
import { CACHE_REPORT } from "../../shared/wire/loop.ts";
import { ask, type Command, fail, parseWords, print, wholeNumber } from "./context.ts";
import { table } from "./terminal.ts";

export const CACHE: Command = {
  usage: "cache [SESSION] [-n COUNT] [--json]",
  summary: "tokens reused, read anew and expected in each request of a session",
  async run(context, args) {
    const words = parseWords(args, { number: { type: "string", short: "n" } }, this.usage);
    if (!words.ok) return fail(context, words);
    const limit = wholeNumber(words.value.values.number, 100, 1, 1_000);
    if (!limit.ok) return fail(context, limit);
    const session = SessionId.nullable().safeParse(words.value.positionals[0] ?? null);
    if (!session.success) return fail(context, err("usage", `usage: bxctl ${this.usage}`));
    const body = { session: session.data, limit: limit.value };
    const reply = await ask(context, "owner-loop/admin", CACHE_REPORT, body);
    if (!reply.ok) return fail(context, reply);
    const found = reply.value.body;
    const turns = [...new Set(found.items.map((one) => one.turn))];
    const rows = found.items.map((one) => [
      `${turns.indexOf(one.turn) + 1}`,
      `${one.reused}`,
      `${one.read}`,
      one.expected === null ? "-" : `${one.expected}`,
      one.cause,
    ]);
    const head = ["turn", "reused", "read anew", "expected", "cause"];
    return print(context, found, () =>
      `session ${found.session}\n` +
      (rows.length === 0 ? "No request was measured yet\n" : table([head, ...rows])));
  },
};
