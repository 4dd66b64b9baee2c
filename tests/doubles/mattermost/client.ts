// A chat client for a plain terminal, in the owner's place: what a phone would show and send, so that
// the whole journey can be rehearsed with the double. With --rehearse it plays a short conversation
// by itself and ends with what that has shown.
import { parseArgs } from "node:util";
import { openPhone, type Phone, type Shown } from "./phone.ts";
import { rehearse } from "./phone_script.ts";

const USAGE = `Usage: deno run --allow-net=HOST:PORT client.ts --url URL --channel ID [options]
  --token TEXT     the owner's token (owner-token)
  --paper PATH     a file to read about
  --rehearse       plays a conversation about it instead of reading a terminal`;

const HELP = `A line answers in the thread you are in; the first one begins a thread.
  /new TEXT     begins another thread, which is another session
  /thread N     goes to thread N          /threads      names them
  /edit TEXT    changes your last post    /delete       takes it back
  /react NAME   puts an emoji (white_check_mark, no_entry) on the last post shown
  /quit
Commands for Boxmaker begin with "!": !help, !approve CODE, !deny CODE, !status, !cancel`;

interface Desk {
  readonly phone: Phone;
  /** Roots in the order they were first seen; a thread's number is its place here. */
  readonly roots: string[];
  here: string;
  lastShown: string;
  lastOwn: string;
}

function print(desk: Desk, post: Shown): void {
  const root = post.root === "" ? post.id : post.root;
  if (!desk.roots.includes(root)) desk.roots.push(root);
  if (post.isOwn) return;
  desk.lastShown = post.id;
  const number = desk.roots.indexOf(root) + 1;
  const mark = post.isDeleted ? " (deleted)" : post.isEdited ? " (edited)" : "";
  const head = `[${number}]${mark}${root === desk.here ? "" : ` (/thread ${number} to answer)`}`;
  const lines = plain(post.text).split("\n");
  console.log(`${head} ${lines[0]}`);
  for (const line of lines.slice(1)) console.log(`    ${line}`);
}

/** Text without what a terminal would obey. */
const plain = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, "\ufffd");

async function obey(desk: Desk, line: string): Promise<"on" | "end"> {
  const [, word = "", rest = ""] = /^(\/[a-z]+)\s*(.*)$/.exec(line) ?? [];
  const { phone, roots } = desk;
  switch (word) {
    case "":
      desk.lastOwn = await phone.say(line, desk.here);
      if (desk.here === "") desk.here = desk.lastOwn;
      return "on";
    case "/new":
      if (rest === "") desk.here = "";
      else desk.here = desk.lastOwn = await phone.say(rest);
      return "on";
    case "/thread":
      desk.here = roots[Number(rest) - 1] ?? desk.here;
      return "on";
    case "/threads":
      roots.forEach((root, at) =>
        console.log(`[${at + 1}] ${plain(phone.posts.get(root)?.text ?? "")}`)
      );
      return "on";
    case "/edit":
      await phone.edit(desk.lastOwn, rest);
      return "on";
    case "/delete":
      await phone.remove(desk.lastOwn);
      return "on";
    case "/react":
      await phone.react(desk.lastShown, rest);
      return "on";
    case "/quit":
      return "end";
    default:
      console.log(HELP);
      return "on";
  }
}

async function talk(phone: Phone, paper: string): Promise<void> {
  const desk: Desk = { phone, roots: [], here: "", lastShown: "", lastOwn: "" };
  phone.onShown((post) => print(desk, post));
  console.log(HELP);
  console.log(`Begin with:  hello\n       then:  /new read ${paper}\n`);
  let held = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (held + chunk).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines.map((one) => one.trim()).filter((one) => one !== "")) {
      try {
        if (await obey(desk, line) === "end") return;
      } catch (thrown) {
        console.log(thrown instanceof Error ? thrown.message : `${thrown}`);
      }
    }
  }
}

async function main(): Promise<number> {
  const TEXT = { type: "string" } as const;
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      url: TEXT,
      channel: TEXT,
      token: TEXT,
      paper: TEXT,
      rehearse: { type: "boolean", default: false },
    },
  });
  const { url, channel, token = "owner-token", paper = "/etc/hostname" } = values;
  if (url === undefined || channel === undefined) {
    console.error(USAGE);
    return 2;
  }
  const phone = await openPhone({ url, channel, token });
  if (values.rehearse) {
    const isShown = await rehearse(phone, paper, console.log);
    await phone.close();
    return isShown ? 0 : 1;
  }
  await talk(phone, paper);
  await phone.close();
  return 0;
}

if (import.meta.main) Deno.exit(await main());
