// `prompt`: what every conversation begins with, in tokens, line by line.
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { ask, type Command, fail, parseWords, print } from "./context.ts";
import { table } from "./terminal.ts";

export const PROMPT: Command = {
  usage: "prompt [--json]",
  summary: "the token bill of what every conversation begins with",
  async run(context, args) {
    const words = parseWords(args, {}, this.usage);
    if (!words.ok) return fail(context, words);
    const reply = await ask(context, "owner-loop/admin", PROMPT_BILL, {});
    if (!reply.ok) return fail(context, reply);
    const bill = reply.value.body;
    const by = bill.counted_by === "server" ? "counted by the model server" : "estimated";
    return print(context, bill, () =>
      table([
        ...bill.lines.map((line) => [String(line.tokens).padStart(6), line.part]),
        [String(bill.total).padStart(6), `in all, of ${bill.budget} allowed (${by})`],
      ]));
  },
};
