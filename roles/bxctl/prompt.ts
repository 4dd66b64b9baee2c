// `prompt`: what every conversation begins with, in tokens, line by line.
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { askAndPrint, type Command, form, type Run } from "./context.ts";
import { table } from "./terminal.ts";

const bill: Run = (context) =>
  askAndPrint(context, "owner-loop/admin", PROMPT_BILL, {}, (bill) => {
    const by = bill.counted_by === "server" ? "counted by the model server" : "estimated";
    const all = { tokens: bill.total, part: `in all, of ${bill.budget} allowed (${by})` };
    return table([...bill.lines, all].map((one) => [`${one.tokens}`.padStart(6), one.part]));
  });

export const PROMPT: Command = {
  summary: "the token bill of what every conversation begins with",
  forms: { "": form("prompt", [0, 0], {}, bill) },
};
