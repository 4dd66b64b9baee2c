// Writes session logs as loopd does, into a home folder of a test: chained, opened by record 0, with
// the baseline beside them.
import { seededRandom } from "../../shared/clock/random.ts";
import { openChain } from "../../shared/chain/chained_log.ts";
import type { Fields } from "../../shared/chain/chain_record.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { ulid } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { SESSION_LOG_DOMAIN } from "../../shared/session_log/records.ts";

export const START_MS = Date.UTC(2026, 8, 20, 14, 2);
const TURN = `t-${ulid(START_MS, seededRandom(7))}`;
const CALL = `c-${ulid(START_MS, seededRandom(8))}`;

/** An id that is the same for the same number. */
export function chatId(number: number): string {
  return `chat-${ulid(START_MS, seededRandom(number))}`;
}

/** Makes a session's folder and the baseline of an epoch. */
export function writeBaseline(
  home: string,
  session: string,
  label: Label = { class: "private", untrusted: false },
  epoch = 0,
): void {
  Deno.mkdirSync(`${home}/sessions/${session}`, { recursive: true });
  const baseline = {
    v: 1,
    session,
    epoch,
    created_unix_ms: START_MS,
    label,
    system: "",
    examples: [],
    tools: [],
    sampling: {},
  };
  const path = `${home}/sessions/${session}/${epoch}.baseline.json`;
  Deno.writeTextFileSync(path, JSON.stringify(baseline));
}

/** Appends records to a session's log, which is begun after its baseline when it is not there. */
export function writeRecords(
  home: string,
  session: string,
  records: readonly Fields[],
  epoch = 0,
): void {
  const path = `${home}/sessions/${session}/${epoch}.jsonl`;
  const opened = openChain({
    disk: denoDisk,
    path,
    headPath: null,
    domain: SESSION_LOG_DOMAIN,
    genesis: {
      kind: "open",
      time_unix_ms: START_MS,
      log: `session ${session} epoch ${epoch}`,
      role: "loopd",
      protocol: 1,
      nonce: "n",
      baseline: sha256Hex(Deno.readFileSync(path.replace(".jsonl", ".baseline.json"))),
    },
    repair: (finding) => ({ kind: "repaired", ...finding }),
    check: "full",
  });
  if (!opened.ok) throw new Error(opened.detail);
  const appended = opened.value.chain.appendAll(records);
  opened.value.chain.close();
  if (!appended.ok) throw new Error(appended.detail);
}

export function userRecord(content: string, minutes = 0): Fields {
  return {
    kind: "user",
    time_unix_ms: START_MS + minutes * 60_000,
    turn: TURN,
    message_id: "m1",
    content,
    artifact: null,
  };
}

/** An assistant's record; `calls` are pairs of a name and arguments as JSON text. */
export function assistantRecord(
  content: string,
  calls: readonly (readonly [string, string])[] = [],
  minutes = 0,
): Fields {
  return {
    kind: "assistant",
    time_unix_ms: START_MS + minutes * 60_000,
    turn: TURN,
    content,
    reasoning_content: "secret reasoning",
    tool_calls: calls.map(([name, text]) => ({
      call: CALL,
      name,
      arguments: text,
      artifact: null,
    })),
    finish: calls.length > 0 ? "tool_calls" : "stop",
    timings: null,
  };
}

export function resultRecord(content: string, label: Label, minutes = 0): Fields {
  return {
    kind: "tool_result",
    time_unix_ms: START_MS + minutes * 60_000,
    turn: TURN,
    call: CALL,
    tool: "read_file",
    content,
    ...label,
    outcome: "done",
    code: null,
    artifact: null,
    bytes: content.length,
    audit: null,
    container: null,
    image: null,
  };
}

export function labelRecord(label: Label, minutes = 0): Fields {
  return { kind: "label", time_unix_ms: START_MS + minutes * 60_000, ...label, why: "read" };
}

export function summaryRecord(content: string, label: Label, minutes = 0): Fields {
  return {
    kind: "tool_summary",
    time_unix_ms: START_MS + minutes * 60_000,
    turn: TURN,
    call: CALL,
    tool: "http_fetch",
    content,
    ...label,
  };
}
