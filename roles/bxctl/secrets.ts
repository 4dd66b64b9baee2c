// `secrets set NAME`: hands a secret to brokerd, which keeps it. It is never an argument, never shown.
import { err } from "../../shared/results/result.ts";
import { SECRET_SET } from "../../shared/wire/broker_owner.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { ask, type Command, fail, misused, parseWords, print } from "./context.ts";
import { shown } from "./terminal.ts";

export const SECRETS: Command = {
  usage: "secrets set NAME [--json]    (typed at a hidden prompt, or one line of standard input)",
  summary: "give brokerd a secret that grants may name",
  async run(context, args) {
    const words = parseWords(args, {}, this.usage, 2);
    if (!words.ok) return fail(context, words);
    const [verb, name] = words.value.positionals;
    if (verb !== "set" || name === undefined) return misused(context, this.usage);
    const { terminal } = context;
    const typed = await terminal.readHidden(`Secret ${shown(name)} (not shown): `);
    if (terminal.isInteractive) terminal.err("\n");
    if (typed === null || typed === "") return fail(context, err("usage", "No secret was typed"));
    const options = { upload: encodeUtf8(typed) };
    const reply = await ask(context, "owner-broker/admin", SECRET_SET, { name }, options);
    if (!reply.ok) return fail(context, reply);
    const { was_there } = reply.value.body;
    const text = `${was_there ? "Replaced" : "Kept"} the secret ${name}\n`;
    return print(context, { name, was_there }, text);
  },
};
