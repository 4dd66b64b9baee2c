// The closed list of refusals and alarms. Each has one sentence on what happened and one on what to
// do, and an entry of the same name in docs/runbook.md (a test compares the two lists both ways).
// Codes are stable: the owner searches for them, scripts match on them.

type Entry = { readonly what: string; readonly todo: string };

export const ERRORS = {
  "internal": {
    what: "A part of the house broke one of its own rules.",
    todo: "Look in the role's log; the role restarts by itself.",
  },
  "config-invalid": {
    what: "A configuration file has a key, value or syntax that is not allowed.",
    todo: "Correct the line that the message names.",
  },
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether `text` is one of the stable codes (used when a code arrives over a socket). */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}
