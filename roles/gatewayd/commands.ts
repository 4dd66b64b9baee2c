// The words the owner can say to the house itself. None of them ever reaches the model.
//
// A command is the whole message, after trimming and folding to ASCII. A quote, code or a longer text
// around it makes it an ordinary message.

const PLAIN = ["cancel", "stop", "status", "new", "jobs", "runs", "help"] as const;

export type Command =
  | { readonly is: "approve" | "deny"; readonly code: string }
  | { readonly is: typeof PLAIN[number] }
  | { readonly is: "unknown"; readonly word: string };

export const HELP = [
  "!approve CODE or !deny CODE, in the thread of the question",
  "!cancel ends what this thread is doing",
  "!stop refuses every effect until bxctl resume",
  "!status says how the house is",
  "!new begins a conversation in a thread of its own",
  "!jobs and !runs are for a later version and say so",
].join("\n");

/** The command that a whole message is, or null for a message to the model. */
export function commandOf(message: string): Command | null {
  const typed = message.normalize("NFKC").trim();
  if (!/^![a-z]/i.test(typed) || /[\n\r]/.test(typed)) return null;
  const [word = "", ...rest] = typed.slice(1).split(/ +/);
  const name = word.toLowerCase();
  const [code = ""] = rest;
  if (name === "approve" || name === "deny") {
    if (rest.length === 1 && /^[a-z0-9-]{1,64}$/i.test(code)) return { is: name, code };
  } else {
    const plain = PLAIN.find((one) => one === name);
    if (plain !== undefined && rest.length === 0) return { is: plain };
  }
  return { is: "unknown", word: name.replace(/[^a-z0-9_]/g, "").slice(0, 32) };
}
