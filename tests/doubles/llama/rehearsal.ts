// The rehearsal model: a few fixed rules on top of the double, for an owner's first contact on a
// machine that has no model. It says that it is none, does what its rules know through the tools
// the request declares, and reads back what they return. It never invents a result.
import type { ChatMessage, ChatRequest } from "./chat_request.ts";
import { textOf } from "./json_value.ts";
import { calledByName, type Move, ruleFor } from "./rehearsal_rules.ts";
import { answerToResult } from "./rehearsal_results.ts";
import { call, type Part, say, type Script, speak, think } from "./turn.ts";

export const REHEARSAL_NAME = "rehearsal";

const INTRODUCTION = [
  "(I am the rehearsal model, not a real one: I follow a handful of fixed rules so that you can try",
  "the house. Everything around me, from grants and approvals to containers, memory and the audit",
  "log, is the real thing.)",
].join(" ");

export const UNDERSTOOD = [
  "remember that ...                 puts a fact into memory",
  "note that ...                     keeps a dated note",
  "what do you know about ...        searches earlier sessions and notes",
  "read FILE                         reads a file",
  "list DIR                          lists a folder",
  "search WORDS in DIR               searches files",
  "write WORDS to FILE               writes a file",
  "fetch URL                         fetches a page",
  "what time is it                   asks the clock",
  "find tool WORDS                   looks for a tool",
  "every morning ...                 shows a job file for you to save",
  "think 50                          thinks for fifty tokens",
];

/** The script of the rehearsal model. */
export const rehearsal: Script = (request) => {
  const { messages } = request;
  const lastUser = messages.findLastIndex((m) => m.role === "user");
  const owner = messages[lastUser]?.content ?? "";
  const since = messages.slice(lastUser + 1);
  const last = since.at(-1);
  const move = last?.role === "tool" ? afterTool(owner, since) : firstMove(owner, request);
  return speak(...partsOf(move, request));
};

function afterTool(owner: string, since: readonly ChatMessage[]): Move {
  const asked = since.findLast((m) => m.role === "assistant")?.calls[0];
  const results = since.slice(since.findLastIndex((m) => m.role === "assistant") + 1);
  const text = results.map((m) => m.content).join("\n");
  return { kind: "say", text: answerToResult(owner, asked, text) };
}

function firstMove(owner: string, request: ChatRequest): Move {
  const offered = toolNames(request);
  const move = ruleFor(owner) ?? calledByName(owner, request);
  if (move === null && /^(?:hi|hello|hey|good \w+)\b/i.test(owner.trim())) {
    return { kind: "say", text: `Hello. ${helpText("I understand")}` };
  }
  if (move === null) {
    return { kind: "say", text: helpText("That fits none of my rules. What I understand") };
  }
  if (move.kind !== "tool" || offered.includes(move.name)) return move;
  return { kind: "say", text: `I would use the tool ${move.name}, but it is not offered to me.` };
}

function toolNames(request: ChatRequest): string[] {
  return request.tools.map((tool) => {
    const fn = tool["function"];
    return typeof fn === "object" && fn !== null && "name" in fn ? textOf(fn.name) : "";
  });
}

function helpText(lead: string): string {
  return `${lead}:\n\n${UNDERSTOOD.map((line) => `    ${line}`).join("\n")}`;
}

function partsOf(move: Move, request: ChatRequest): Part[] {
  if (move.kind === "tool") return [call(move.name, move.args)];
  const said = request.messages.some((m) =>
    m.role === "assistant" && m.content.includes("rehearsal model")
  );
  const repeats = move.text.includes("rehearsal model");
  const text = said || repeats ? move.text : `${move.text}\n\n${INTRODUCTION}`;
  if (move.kind === "say") return [say(text)];
  return [think(Array.from({ length: move.tokens }, (_, i) => i === 0 ? "on" : " on")), say(text)];
}
