// The scripted conversation of `try`, played through bxctl alone, and the proof it leaves behind.
import type { House, Ran } from "./house.ts";

export interface Proof {
  readonly claim: string;
  readonly isShown: boolean;
  readonly evidence: string;
}

export interface Play {
  readonly house: House;
  /** A file that a grant names. */
  readonly paper: string;
  /** A file that exists and that no grant names. */
  readonly forbidden: string;
  readonly phrases: Phrases;
  readonly say: (line: string) => void;
}

/** How this model is talked to. */
export interface Phrases {
  readonly hello: string;
  readonly tell: string;
  read(path: string): string;
  /** Null when the model cannot be relied on to search; then the owner does, with bxctl. */
  readonly recall: string | null;
}

const FACT = /Thursday/;

/** What the rehearsal's rules understand. */
export const REHEARSAL_PHRASES: Phrases = {
  hello: "hello",
  tell: "remember that the launch window moved to Thursday",
  read: (path) => `read ${path}`,
  recall: "what do you know about the launch window",
};

/** What the small model's examples have shown it. */
export const SMALL_MODEL_PHRASES: Phrases = {
  hello: "Hello.",
  tell: "The launch window moved to Thursday.",
  read: (path) => `Read the file ${path} and tell me what it says.`,
  recall: null,
};

interface Reply {
  readonly session: string;
  readonly kind: string;
  readonly text: string;
}

interface ToolResult {
  readonly tool: string;
  readonly outcome: string;
  readonly code: string | null;
  readonly container: string | null;
  readonly image: string | null;
}

const APPROVAL_MS = 60_000;

/** Plays every step and returns what each has shown. Throws only when bxctl itself cannot run. */
export async function playScript(play: Play): Promise<Proof[]> {
  const proofs: Proof[] = [];
  const hello = await chat(play, play.phrases.hello);
  proofs.push(proof("a message was answered", hello.kind === "reply", firstLine(hello.text)));
  const told = await chat(play, play.phrases.tell);
  proofs.push(proof("a fact was told", told.kind === "reply", firstLine(told.text)));
  proofs.push(await showDenied(play));
  proofs.push(await showApproved(play));
  proofs.push(await showRecalled(play, told.session));
  proofs.push(await showAudit(play));
  return proofs;
}

function proof(claim: string, isShown: boolean, evidence: string): Proof {
  return { claim, isShown, evidence };
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.slice(0, 120) ?? "";
}

async function showDenied(play: Play): Promise<Proof> {
  const reply = await chat(play, play.phrases.read(play.forbidden));
  const result = await lastResult(play, reply.session);
  const isDenied = result?.outcome === "denied" && result.container === null;
  return proof("a call without a grant was denied", isDenied, `${result?.tool}: ${result?.code}`);
}

async function showApproved(play: Play): Promise<Proof> {
  const asked = chat(play, play.phrases.read(play.paper));
  const isAnswered = await approveNext(play);
  const reply = await asked;
  const result = await lastResult(play, reply.session);
  const isShown = isAnswered && result?.outcome === "done" && result.container !== null;
  const evidence = `${result?.tool} in container ${result?.container} of image ${result?.image}`;
  return proof("a call was approved and ran in a fresh container", isShown, evidence);
}

async function showRecalled(play: Play, toldIn: string): Promise<Proof> {
  if (play.phrases.recall === null) {
    play.say("$ bxctl recall launch window");
    const ran = await play.house.bx(["recall", "launch", "window"]);
    for (const row of ran.out.trimEnd().split("\n")) play.say(`  ${row}`);
    return proof("the fact is found again", FACT.test(ran.out), `bxctl recall, told in ${toldIn}`);
  }
  const reply = await chat(play, play.phrases.recall);
  const isShown = reply.session !== toldIn && FACT.test(reply.text);
  return proof("the fact was recalled in a new session", isShown, `${reply.session} knows it`);
}

async function showAudit(play: Play): Promise<Proof> {
  const ran = await play.house.bx(["audit", "verify", "--json"]);
  const found = parseObject(ran);
  const head = Object(found.head);
  const evidence = `${found.records} records verified, head ${head.n}:${
    String(head.hash).slice(0, 16)
  }`;
  return proof("the audit log is whole", ran.status === 0 && found.is_whole === true, evidence);
}

/** One message through `bxctl chat -m`, in a session of its own, shown as a person would see it. */
async function chat(play: Play, text: string): Promise<Reply> {
  play.say(`> ${text}`);
  const ran = await play.house.bx(["chat", "-m", text, "--json"]);
  const line = ran.out.trim().split("\n").at(-1) ?? "";
  const value = parseObject({ ...ran, out: line });
  const reply = {
    session: String(value.session),
    kind: String(value.kind ?? "error"),
    text: String(value.text ?? ran.err),
  };
  for (const row of reply.text.trimEnd().split("\n")) play.say(`  ${row}`);
  return reply;
}

/** Waits for the next question to the owner, shows it and approves it. */
async function approveNext(play: Play): Promise<boolean> {
  const until = performance.now() + APPROVAL_MS;
  while (performance.now() < until) {
    const items = parseObject(await play.house.bx(["approvals", "--json"])).approvals;
    const first = Array.isArray(items) ? items[0] : undefined;
    if (first !== undefined) {
      const shown = parseObject(
        await play.house.bx(["approvals", "show", String(first.approval), "--json"]),
      );
      for (const row of String(shown.text).split("\n")) play.say(`  | ${row}`);
      play.say(`$ bxctl approve ${shown.code}`);
      return (await play.house.bx(["approve", String(shown.code)])).status === 0;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

async function lastResult(play: Play, session: string): Promise<ToolResult | undefined> {
  const { records } = parseObject(await play.house.bx(["sessions", "show", session, "--json"]));
  if (!Array.isArray(records)) return undefined;
  return records.findLast((record) => record.kind === "tool_result");
}

function parseObject(ran: Ran): Record<string, unknown> {
  try {
    return Object(JSON.parse(ran.out));
  } catch {
    // Not JSON: the command failed in a way of its own, which the caller's proof then shows.
    return {};
  }
}
