// What a conversation looks like: progress on standard error, the model's words on standard output.
// Streamed words are not printed a second time when the finished reply says the same.
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { stateText, type TurnDelta, type TurnState } from "../../shared/wire/loop.ts";
import { progressLine, shown, shownLines, type Terminal, tint } from "./terminal.ts";

type State = BodyOf<typeof TurnState>;
type Delta = BodyOf<typeof TurnDelta>;

export interface ChatScreen {
  prompt(): void;
  state(state: State): void;
  delta(delta: Delta): void;
  /** The finished text of a turn. */
  reply(text: string): void;
  /** A line from the house itself. */
  say(text: string): void;
  /** Several lines that are escaped already, such as an approval's. */
  block(text: string): void;
}

export function chatScreen(terminal: Terminal, style: "streaming" | "whole"): ChatScreen {
  const progress = progressLine(terminal);
  let streamed = "";
  let last = "";
  const endStream = () => {
    if (streamed !== "" && !streamed.endsWith("\n")) terminal.out("\n");
    streamed = "";
  };
  return {
    prompt() {
      progress.clear();
      if (terminal.isInteractive) terminal.err(tint(terminal, "bold", "> "));
    },
    state(state) {
      const line = stateText(state);
      if (state.state !== "writing") endStream();
      // The question itself stands on the terminal, and the answer is typed below it.
      if (terminal.isInteractive && state.state === "waiting_approval") progress.clear();
      else if (terminal.isInteractive) progress.show(line);
      // Without a terminal each new step is one line, so that a log of it can be read.
      else if (state.state !== "reading" && line !== last) terminal.err(`${shown(line)}\n`);
      last = line;
    },
    delta(delta) {
      if (style === "whole" || delta.channel !== "answer") return;
      progress.clear();
      terminal.out(shownLines(delta.text));
      streamed += delta.text;
    },
    reply(text) {
      progress.clear();
      const isPrinted = streamed !== "" && streamed.trim() === text.trim();
      endStream();
      if (!isPrinted) terminal.out(`${shownLines(text.trimEnd())}\n`);
    },
    say(text) {
      progress.clear();
      endStream();
      terminal.err(`${tint(terminal, "dim", text)}\n`);
    },
    block(text) {
      progress.clear();
      endStream();
      terminal.err(`${shownLines(text)}\n`);
    },
  };
}
