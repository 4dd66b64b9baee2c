// The rehearsal of the phone's journey: a message is answered in its thread, a call is asked about
// and approved from the phone, another is denied, and a code typed elsewhere counts for nothing.
import type { Phone, Shown } from "./phone.ts";

type Say = (line: string) => void;

interface Step {
  readonly claim: string;
  run(stage: Stage): Promise<string>;
}

interface Stage {
  readonly path: string;
  readonly say: (text: string, root?: string) => Promise<string>;
  readonly until: (what: string, test: (post: Shown) => boolean) => Promise<Shown>;
}

const isIn = (root: string) => (post: Shown) => !post.isOwn && post.root === root;
/** An answer's last words, which no progress is shown under any more. */
const isAnswer = (root: string) => (post: Shown) =>
  isIn(root)(post) && /^[oa]/.test(`${post.props["boxmaker_out"]}`);
const codeIn = (post: Shown) => /!approve ([0-9a-z]+)/.exec(post.text)?.[1] ?? "";
const isQuestion = (root: string) => (post: Shown) => isIn(root)(post) && codeIn(post) !== "";
const firstLine = (post: Shown) => post.text.split("\n")[0]?.slice(0, 100) ?? "";

async function asked(stage: Stage) {
  const root = await stage.say(`read ${stage.path}`);
  const question = await stage.until("a question", isQuestion(root));
  return { root, code: codeIn(question) };
}

const STEPS: readonly Step[] = [
  {
    claim: "a message was answered in its thread",
    run: async ({ say, until }) => {
      const root = await say("hello");
      return firstLine(await until("an answer", isAnswer(root)));
    },
  },
  {
    claim: "a command never reached the model",
    run: async ({ say, until }) => {
      const root = await say("!help");
      return firstLine(await until("the commands", isIn(root)));
    },
  },
  {
    claim: "a call was approved from its thread and ran",
    run: async (stage) => {
      const { root, code } = await asked(stage);
      await stage.say(`!approve ${code}`, root);
      return firstLine(await stage.until("an answer", isAnswer(root)));
    },
  },
  {
    claim: "a code typed in another thread counted for nothing, and the call was denied",
    run: async (stage) => {
      const { root, code } = await asked(stage);
      const elsewhere = await stage.say(`!approve ${code}`);
      await stage.until("a refusal", isIn(elsewhere));
      await stage.say(`!deny ${code}`, root);
      const denied = (post: Shown) => isIn(root)(post) && /^Denied/.test(post.text);
      await stage.until("the denial", denied);
      return firstLine(await stage.until("an answer", isAnswer(root)));
    },
  },
];

/** Plays every step, each for `withinMs` at most for what it waits for; true when each has shown what it claims. */
export async function rehearse(
  phone: Phone,
  path: string,
  say: Say,
  withinMs = 60_000,
): Promise<boolean> {
  phone.onShown((post) => {
    const mark = post.isOwn ? "> " : post.isEdited ? "~ " : "  ";
    for (const line of post.text.split("\n")) say(`${mark}${line}`);
  });
  const stage: Stage = {
    path,
    say: (text, root) => phone.say(text, root),
    until: (what, test) => phone.until(what, test, withinMs),
  };
  const shown: string[] = [];
  let isAllShown = true;
  for (const { claim, run } of STEPS) {
    try {
      shown.push(`yes  ${claim}: ${await run(stage)}`);
    } catch (thrown) {
      isAllShown = false;
      shown.push(`NO   ${claim}: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
  say("\nWhat this has shown from the phone");
  for (const line of shown) say(`  ${line}`);
  return isAllShown;
}
