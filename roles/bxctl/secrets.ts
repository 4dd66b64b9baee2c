// `secrets set NAME`: hands a secret to brokerd, which keeps it. It is never an argument, never shown.
import { err } from "../../shared/results/result.ts";
import { SECRET_SET } from "../../shared/wire/broker_owner.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { ask, type Command, fail, form, print, type Run } from "./context.ts";
import { shown } from "./terminal.ts";

const set: Run = async (context, { positionals: [name = ""] }) => {
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
};

export const SECRETS: Command = {
  summary: "give brokerd a secret, typed at a hidden prompt or one line of standard input",
  forms: { set: form("secrets set NAME", [1, 1], {}, set) },
};
