// The closed list of refusals and alarms. Each has one sentence on what happened and one on what to
// do, and an entry of the same name in docs/runbook.md (a test compares the two lists both ways).
// Codes are stable: the owner searches for them, scripts match on them.

type Entry = { readonly what: string; readonly todo: string };

export const ERRORS = {
  "internal": {
    what: "A part of the house broke one of its own rules.",
    todo: "Look in the role's log; the role restarts by itself.",
  },
  "not-utf8": {
    what: "Bytes that should be UTF-8 text are not.",
    todo: "Look at the file or message that the error names.",
  },
  "not-json": {
    what: "A text that should be JSON is not, or is beyond the limits.",
    todo: "Look at the file or message that the error names.",
  },
  "not-canonical": {
    what: "A value was not written in the one form that the house accepts.",
    todo: "If a file was edited by hand, restore it; otherwise look in the role's log.",
  },
  "frame-too-large": {
    what: "A message between two roles is larger than a frame may be.",
    todo: "Look in the role's log; this is a bug of the sender.",
  },
  "frame-malformed": {
    what: "A message between two roles does not have the agreed form.",
    todo: "Make sure that all roles are of one version, then look in the role's log.",
  },
  "frame-deadline": {
    what: "A message between two roles did not arrive in time.",
    todo: "See whether the machine is overloaded or the other role hangs.",
  },
  "frame-closed": {
    what: "The other role closed the connection in the middle of a message.",
    todo: "See in its log why it stopped; it restarts by itself.",
  },
  "peer-down": {
    what: "A role that is needed here does not answer on its socket.",
    todo: "Run bxctl status, then start the role or look in its log.",
  },
  "peer-silent": {
    what: "A role took a request and then said nothing for too long.",
    todo: "Run bxctl status; restart the role if it hangs.",
  },
  "version-skew": {
    what: "Two parts of the house are of different versions.",
    todo: "Restart every role, and bxctl, from the same checkout.",
  },
  "kind-unknown": {
    what: "This socket does not take a request of that kind.",
    todo: "Make sure that all roles are of one version.",
  },
  "not-found": {
    what: "What was asked for does not exist.",
    todo: "Check the name or id.",
  },
  "request-invalid": {
    what: "A request has a value that is not allowed.",
    todo: "Correct the value that the message names.",
  },
  "config-invalid": {
    what: "A configuration file has a key, value or syntax that is not allowed.",
    todo: "Correct the line that the message names.",
  },
  "disk-failed": {
    what: "The disk could not confirm that something was written, so its state is unknown.",
    todo: "Check the disk; the role ends itself and looks at its files anew when it starts.",
  },
  "disk-full": {
    what: "There is no room left on the disk for what had to be written.",
    todo: "Make room, then try again; nothing half-written was kept.",
  },
  "disk-error": {
    what: "A file or folder could not be read or changed.",
    todo: "Look at the path and reason in the message: often an owner or mode that is wrong.",
  },
  "file-missing": {
    what: "A file that is needed is not there.",
    todo: "Restore the file that the message names, or create it.",
  },
  "file-exists": {
    what: "A file that had to be new is already there with other content.",
    todo: "Look at the file that the message names before removing it.",
  },
  "file-too-large": {
    what: "A file is larger than the part that reads it allows.",
    todo: "Shorten the file that the message names.",
  },
  "already-running": {
    what: "Another instance of this role holds the lock of this home.",
    todo: "Stop the other instance, or use another home.",
  },
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether `text` is one of the stable codes (used when a code arrives over a socket). */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}
