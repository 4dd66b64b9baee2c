// What may be remembered and shown to the model as memory. Run on every write and again when the
// block is built. It stops hidden characters, template markup and the crudest orders; it cannot tell
// a true sentence from a planted one, which is why labels decide who may write what.
import { hasMarkup } from "../../shared/text/markup.ts";
import { isPlainText } from "../../shared/text/escape.ts";
import { isSeparator } from "./entries.ts";

/** Sentences that speak to a model rather than state something. Matched on folded text. */
const ORDERS = [
  /\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|preceding|system|all)\b.{0,30}\b(?:instructions?|prompts?|rules?|messages?|directions?)\b/u,
  /\b(?:new|updated|revised) (?:system )?(?:instructions?|prompt)\s*:/u,
  /\byou are now\b/u,
  /\b(?:act|behave|respond) as (?:if you (?:are|were)|an? unrestricted)\b/u,
  /\b(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|ask) (?:the |your )?(?:owner|user|human)\b/u,
  /\b(?:without|skip|bypass)\b.{0,20}\b(?:approval|asking the owner|the broker|the grants?)\b/u,
  /\b(?:reveal|print|repeat) (?:your|the) system prompt\b/u,
];

/** A line like those that part the block; many empty lines are each looked at once. */
const HEAD = /^[^\S\n]*#+\s*(?:soul|memory|user)\.md/mu;

function hexOf(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Why a text cannot be shown as memory: hidden characters or template markup; null when it can. */
export function formProblem(text: string): string | null {
  for (const char of text) {
    if (char !== "\n" && char !== "\t" && !isPlainText(char)) {
      return `it contains the control or invisible character ${hexOf(char)}`;
    }
  }
  return hasMarkup(text) ? "it contains markup of a chat template" : null;
}

/** As `formProblem`, and for what the agent itself wrote also heads and the instruction phrases. */
export function entryProblem(text: string): string | null {
  if (text === "") return "it is empty";
  if (text.split("\n").some(isSeparator)) return "it contains a line holding only §";
  const form = formProblem(text);
  if (form !== null) return form;
  const plain = text.normalize("NFKC").toLowerCase();
  if (HEAD.test(plain)) return "it contains a head of a memory file";
  const folded = plain.replace(/[’‘]/g, "'").replace(/\s+/g, " ");
  return ORDERS.some((order) => order.test(folded))
    ? "it reads as an instruction to a model"
    : null;
}
