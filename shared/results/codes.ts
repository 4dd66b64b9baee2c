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
  "launch-refused": {
    what: "The launcher could not start a role: its Deno, its folders or its call are not right.",
    todo: "Correct what the message names, then start the role again.",
  },
  "home-unsafe": {
    what: "The home folder is open to others, belongs to another user, or holds foreign entries.",
    todo: "Correct the owner or mode, or remove the entry, that the message names.",
  },
  "root-forbidden": {
    what: "A path root would open the house's own files, code or image store to tools.",
    todo: "Name a folder of yours that has nothing to do with Boxmaker's home and source.",
  },
  "runtime-unavailable": {
    what: "Containers cannot be started here, so no tool runs.",
    todo: "Do what the detail names (install Podman, a runtime or uidmap), then restart brokerd.",
  },
  "runtime-moved": {
    what: "Podman's store or runtime folder is not where it was when it was made.",
    todo: "Give brokerd the old folders, or reset the store and load the tool image again.",
  },
  "runtime-unsafe": {
    what: "A test container did not have every wall that it must have.",
    todo: "Do not go round it: look at the wall that the detail names.",
  },
  "image-missing": {
    what: "The tool image is not in the store.",
    todo: "Run deno task image, then restart brokerd.",
  },
  "image-changed": {
    what: "A file of the stored tool image is not the one that was built.",
    todo: "Find out who changed it, then load the image again and restart brokerd.",
  },
  "catalog-mismatch": {
    what: "The catalogue beside the tool image is not the one that the image names.",
    todo: "Build and load the image again.",
  },
  "mount-refused": {
    what: "A granted file or folder cannot be given to a container as it is now.",
    todo:
      "Look at the path in the detail: gone, replaced by a link, another mount, or an odd name.",
  },
  "call-already-started": {
    what: "A container of this call exists already, so it is not started again.",
    todo: "Look in the audit log for the outcome of the call.",
  },
  "container-not-started": {
    what: "Podman could not start the container of this call.",
    todo: "Read the first line of Podman's answer in brokerd's log.",
  },
  "egress-unavailable": {
    what: "A tool call needs the network, and no way out could be opened.",
    todo: "Nothing was sent; see whether egressd runs, with bxctl status.",
  },
  "channel-idle": {
    what: "No channel is configured, so nothing can be posted to the owner.",
    todo: "Answer with bxctl, or configure a Mattermost server.",
  },
  "channel-unreachable": {
    what: "The Mattermost server does not answer.",
    todo: "Nothing is lost; look at the server, its address and the network between.",
  },
  "channel-token-refused": {
    what: "The Mattermost server no longer takes the bot's token: it expired or was revoked.",
    todo: "Make a new token for the bot, put it where the old one was, and restart gatewayd.",
  },
  "channel-misconfigured": {
    what: "The Mattermost server, the bot account or a channel is not as the configuration says.",
    todo: "Correct what the detail names; docs/mattermost.md lists what is needed.",
  },
  "channel-deaf": {
    what: "The Mattermost server kept the connection open and stopped sending events on it.",
    todo: "Nothing; a new connection is made, and what was missed is read again.",
  },
  "channel-clock-skew": {
    what: "The clocks of the Mattermost server and of this machine differ by more than a minute.",
    todo: "Let both follow a time server.",
  },
  "channel-post-refused": {
    what: "The Mattermost server refused a post for good.",
    todo: "Look at the server's answer in the detail; the answer itself is in the session.",
  },
  "log-broken": {
    what: "A log does not follow from its own hashes or from its head file.",
    todo: "Do not edit or delete it; compare it with a backup and with the heads you were shown.",
  },
  "record-invalid": {
    what: "A record cannot be written as the log's own reader would refuse it.",
    todo: "Look in the role's log; what was to be recorded did not happen.",
  },
  "session-damaged": {
    what: "A session's files are not what was written, so it is not continued.",
    todo: "Start a new session; look at the file and place that the message names.",
  },
  "memory-unavailable": {
    what: "The memory files cannot be put into a prompt, so no session starts.",
    todo: "Correct the memory file that the message names, or start memoryd.",
  },
  "memory-entry-omitted": {
    what: "Entries of the memory files were left out of the prompt as their text is not safe.",
    todo: "Rewrite or remove the entries that the message names.",
  },
  "self-test-failed": {
    what: "The model server is not as recorded, so no turn starts.",
    todo: "Look at the check that bxctl status names; correct the server or the recorded settings.",
  },
  "prefix-broken": {
    what: "A request would not have extended the one before it, so it was not sent.",
    todo: "Start a new session; this is a bug of loopd.",
  },
  "queue-full": {
    what: "More turns are waiting than the configuration allows.",
    todo: "Wait for some of them, or cancel one.",
  },
  "model-unreachable": {
    what: "The model server does not answer.",
    todo: "Start the server, and look at inferproxy and its configured address.",
  },
  "model-not-loaded": {
    what: "The model server could not load the model.",
    todo: "Look in the server's log: memory, the limit of loaded models, or a broken preset.",
  },
  "model-silent": {
    what: "The model server sent nothing for longer than the configured limit.",
    todo: "Look at the server; raise first_byte_s or silence_s when it is only slow.",
  },
  "model-stream-broken": {
    what: "The model server's answer broke off before its end.",
    todo: "Send the message again; look in the server's log when it happens often.",
  },
  "model-refused": {
    what: "The model server refused the request.",
    todo: "Read what it says in the message; look in its log.",
  },
  "model-auth-required": {
    what: "The model server asks for an API key, which is not supported.",
    todo: "Start the server without a key, on an address that only this machine reaches.",
  },
  "session-full": {
    what: "The conversation no longer fits into the model's context.",
    todo: "Start a new session and say there what is still needed.",
  },
  "thinking-limit": {
    what: "The model was still thinking when its limit for one turn was used up.",
    todo: "Ask in smaller steps, or raise thinking_tokens.",
  },
  "answer-empty": {
    what: "The model ended its answer without a word.",
    todo: "Ask again; raise thinking_tokens when it used them all.",
  },
  "tool-calls-limit": {
    what: "The turn reached its limit of tool calls and was ended.",
    todo: "Ask in smaller steps, or raise tool_calls.",
  },
  "repeated-call": {
    what: "The model made the same tool call again and again, so the turn was ended.",
    todo: "Ask in other words; look at the call's result in the session.",
  },
  "turn-cancelled": {
    what: "The turn was cancelled; what was said before it is kept.",
    todo: "Nothing; write again whenever you like.",
  },
  "tool-unknown": {
    what: "There is no tool of that name.",
    todo: "Nothing; the model was told to look for one with find_tool.",
  },
  "arguments-invalid": {
    what: "The arguments of a tool call do not fit the tool.",
    todo: "Nothing; the model was told what is wrong.",
  },
  "arguments-too-large": {
    what: "The arguments of a tool call are larger than a call may carry.",
    todo: "Nothing; the model was told to send less.",
  },
  "session-repaired": {
    what: "A session's log had an end that was never acknowledged; it was cut or taken over.",
    todo: "Nothing; the session goes on, and the log says what was found.",
  },
  "usage": {
    what: "The command was not understood.",
    todo: "Run bxctl without a command to see them all.",
  },
  "memory-text-refused": {
    what: "A text was not taken into memory as it holds hidden characters, markup or orders.",
    todo: "Write it in plain words; the message says what was found.",
  },
  "memory-duplicate": {
    what: "A memory file would hold the same entry twice.",
    todo: "Nothing; the model was shown the entries.",
  },
  "memory-no-match": {
    what: "An edit of memory named an entry that is not there, or not there once.",
    todo: "Nothing; the model was shown the entries.",
  },
  "memory-incomplete": {
    what: "A consolidation of memory left the fate of some entry open.",
    todo: "Nothing; the model was told which entry.",
  },
  "memory-over-limit": {
    what: "A memory file would be longer than it may be.",
    todo: "Nothing; the model was told to consolidate.",
  },
  "memory-untrusted": {
    what: "A session may not change what the agent holds true, because of what it has read.",
    todo: "Make the change in a new conversation, or by hand.",
  },
  "memory-changed": {
    what: "A memory file was changed by somebody else in the middle of an edit.",
    todo: "Nothing; the edit can be made again.",
  },
  "memory-purged": {
    what: "The text, or the session that brings it, was purged from memory by the owner.",
    todo: "Nothing; to have it back, write it into the file by hand in other words.",
  },
  "memory-nothing-to-undo": {
    what: "The journal holds no edit of this memory file.",
    todo: "Look at bxctl memory log; changes made by hand are undone by hand.",
  },
  "memory-not-staged": {
    what: "No edit of this id waits for review.",
    todo: "Look at bxctl memory review for those that do.",
  },
  "memory-index-damaged": {
    what: "The recall index cannot be used and could not be made anew.",
    todo: "Look at the reason in memoryd's log, remove it, then run bxctl reindex.",
  },
  "recall-late": {
    what: "A search in memory took longer than it may.",
    todo: "Try again; during a rebuild of the index it can take a while.",
  },
  "secret-missing": {
    what: "A secret that the configuration names is not where it says.",
    todo: "Put the secret there, in one line, or correct the [secrets] entry.",
  },
  "secret-unsafe": {
    what: "A file with a secret can be read by others than the owner.",
    todo: "chmod 600 the file and give it to the user who owns the home folder.",
  },
  "root-refused": {
    what: "brokerd was started as the system's administrator, and containers would be too.",
    todo: "Start it as an ordinary user.",
  },
  "audit-broken": {
    what: "The audit log is not what it was: a record is missing, changed or replaced.",
    todo: "Run bxctl audit verify, compare with a backup; bxctl audit repair declares it lost.",
  },
  "grants-invalid": {
    what:
      "A grant file has a problem; it grants nothing, and its tool is denied until it is fixed.",
    todo: "Run bxctl grants check and correct the line that it names.",
  },
  "session-refused": {
    what: "A session was not opened: its job or workspace is not one that the owner has named.",
    todo: "Look at the jobs folder, or register the run with bxctl, then try again.",
  },
  "tool-failed": {
    what: "A tool said that it could not do what it was asked, or ended without an answer.",
    todo: "Read its message; its own errors are in brokerd's log.",
  },
  "tool-timeout": {
    what: "A tool took longer than its call may and was ended.",
    todo: "Ask for less at once, or raise timeout_s in the grant.",
  },
  "output-capped": {
    what: "A tool wrote more than its call may and was ended; what came before is kept.",
    todo: "Ask for less at once, or raise output_bytes in the grant.",
  },
  "path-unusable": {
    what: "The path of an allowed call is not there, or is not what the tool needs.",
    todo: "Look at the path in the message.",
  },
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether `text` is one of the stable codes (used when a code arrives over a socket). */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}
