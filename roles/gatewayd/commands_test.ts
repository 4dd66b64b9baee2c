// Guards: an order is the whole message and nothing less, and no order reaches the model.
import { deepStrictEqual, strictEqual } from "node:assert";
import { commandOf } from "./commands.ts";

Deno.test("commandOf() a quote, code, or words around an order make it an ordinary message", () => {
  for (
    const text of [
      "> !approve abc123",
      "`!approve abc123`",
      "```\n!approve abc123\n```",
      "please !approve abc123",
      "!approve abc123\nand more",
      "Fwd: !deny abc123",
      "approve abc123",
      "!",
      "! approve abc123",
      "!!",
      "",
    ]
  ) strictEqual(commandOf(text), null, text);
});

Deno.test("commandOf() reads orders as a phone types them", () => {
  deepStrictEqual(commandOf("  !Approve  AbC-123 "), { is: "approve", code: "AbC-123" });
  deepStrictEqual(commandOf("！deny ａｂｃ１２３"), { is: "deny", code: "abc123" });
  deepStrictEqual(commandOf("!stop"), { is: "stop" });
});

Deno.test("commandOf() an order in a form it does not have is unknown, not a message", () => {
  for (
    const text of ["!approve", "!approve a b", "!approve \u200b", "!stop now", "!sudo", "!deny <x>"]
  ) {
    strictEqual(commandOf(text)?.is, "unknown", text);
  }
});
