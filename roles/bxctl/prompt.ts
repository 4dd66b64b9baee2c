// `prompt`: what every conversation begins with, in tokens, line by line.
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { askAndPrint, type Command, fail, parseWords } from "./context.ts";
import { table } from "./terminal.ts";

export const PROMPT: Command = {
  usage: "prompt [--json]",
  summary: "the token bill of what every conversation begins with",
  async run(context, args) {
    const words = parseWords(args, {}, this.usage);
    if (!words.ok) return fail(context, words);
    return await askAndPrint(context, "owner-loop/admin", PROMPT_BILL, {}, (bill) => {
      const by = bill.counted_by === "server" ? "counted by the model server" : "estimated";
      const all = { tokens: bill.total, part: `in all, of ${bill.budget} allowed (${by})` };
      return table([...bill.lines, all].map((one) => [`${one.tokens}`.padStart(6), one.part]));
    });
  },
};
