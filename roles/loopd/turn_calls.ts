// The tool calls of a turn: resolved, asked of brokerd, and their results appended. A call always
// gets a result, so that no request ever shows the model a call without one.
import { z } from "zod";
import { join } from "../../shared/labels/label.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { neutraliseMarkup } from "../../shared/text/markup.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { CallEnd, Response, ToolCall } from "./broker.ts";
import { recordsOf } from "./request.ts";
import { sessionKind } from "./session_kind.ts";
import { declaredTools, resolveCall, type Resolved } from "./tool_calls.ts";
import { shownFailure, shownPage, shownResult } from "./tool_result.ts";
import type { Turn } from "./turn.ts";
import { repeatWarning } from "./repeats.ts";
import { REPEATS_TOLD } from "./turn_step.ts";

type ToolResult = Extract<SessionRecord, { kind: "tool_result" }>;
type Run = Extract<Resolved, { is: "run" }>;

/** Makes one call and appends its result. A failure is the disk's. */
export async function performCall(
  turn: Turn,
  call: LoggedCall,
  repeats: number,
): Promise<Result<null>> {
  const { house, session } = turn;
  const spoiled = spoiledProblem(turn, call);
  if (spoiled !== null) {
    return appendOwn(turn, call, { tool: call.name, code: "arguments-invalid", text: spoiled });
  }
  await openAtBroker(turn);
  const catalog = session.catalogs === null ? null : await house.broker.tools(session.catalogs);
  const declared = declaredTools(session.file.baseline.tools);
  const resolved = resolveCall(call, { declared, catalog });
  return resolved.is === "corrective"
    ? appendOwn(turn, call, resolved)
    : await askBroker(turn, call, resolved, repeats);
}

/** Why a call cannot be run at all: its arguments did not survive, or its answer was cut off. */
function spoiledProblem(turn: Turn, call: LoggedCall): string | null {
  if (call.artifact !== null) {
    return `${call.name} was not called: its arguments were not the text of one JSON object. ` +
      "Send the call again with whole arguments.";
  }
  const answer = recordsOf(turn.session.file.records, turn.turn).find((record) =>
    record.kind === "assistant" && record.tool_calls.includes(call)
  );
  return answer?.kind !== "assistant" || answer.finish === "tool_calls"
    ? null
    : `${call.name} was not called: the answer was cut off before it ended. Send the call again.`;
}

/** Makes brokerd know the session and takes its label over. Without brokerd the call itself will say so. */
async function openAtBroker(turn: Turn): Promise<void> {
  const { house, session } = turn;
  if (session.catalogs !== null) return;
  const opened = await house.broker.open(session.file.id, sessionKind(session.file.id));
  if (!opened.ok) {
    return house.ports.log(`session_open ${session.file.id}: ${opened.code}: ${opened.detail}`);
  }
  session.catalogs = opened.value.catalogs;
  session.file.raise(opened.value.label, "brokerd's label of the session");
}

async function askBroker(
  turn: Turn,
  call: LoggedCall,
  resolved: Run,
  repeats: number,
): Promise<Result<null>> {
  const { house, session } = turn;
  const { id } = session.file;
  const named = { tool: resolved.tool, call: call.call };
  const asked: ToolCall = { session: id, turn: turn.turn, ...named, args: resolved.text };
  house.hub.state(id, turn.turn, "calling", named);
  const ran = await house.broker.run(asked, turn.signal, ({ state, approval }) => {
    const isWaiting = state === "waiting_approval";
    house.hub.state(id, turn.turn, isWaiting ? "waiting_approval" : "calling", {
      ...named,
      approval,
    });
  });
  // A stop withdraws nothing: the next start asks for the same call again.
  if (ran === null && turn.isLeft()) return ok(null);
  const end = ran ?? await house.broker.cancel(asked);
  if (end.is !== "answered") {
    const { code, detail } = end.err;
    const content = shownFailure(resolved.tool, end.is, detail, code);
    return appendResult(turn, call, { tool: resolved.tool, outcome: end.is, code, content });
  }
  const kept = appendResponse(turn, call, resolved, end, repeats);
  if (kept.ok) await house.broker.ack(id, call.call);
  return kept;
}

function appendResponse(
  turn: Turn,
  call: LoggedCall,
  resolved: Run,
  { response, output }: Extract<CallEnd, { is: "answered" }>,
  repeats: number,
): Result<null> {
  const { file } = turn.session;
  const { tool } = resolved;
  const { outcome, code, audit, container, image } = response;
  if (outcome === "run_local") return appendPage(turn, call, resolved, response);
  const shown = shownResult({
    ...response,
    ...{ tool, outcome, output, call: call.call, isCut: response.is_cut },
    capBytes: turn.house.config.tools.result_bytes,
    warning: repeats < REPEATS_TOLD ? "" : repeatWarning(repeats),
  });
  const artifact = shown.isExact ? ok(null) : file.archive(output);
  if (!artifact.ok) return artifact;
  const raised = file.raise(response.session_label, `result of ${tool}`);
  if (!raised.ok) return raised;
  const told = { tool, outcome, code, audit, container, image, ...response.label };
  const own = { content: shown.content, artifact: artifact.value, bytes: output.length };
  return appendResult(turn, call, { ...told, ...own });
}

const PageArguments = z.object({
  call: z.string(),
  offset: z.int().min(0).default(0),
  limit: z.int().min(1).default(1_000_000_000),
});

/** A page of an earlier result of this session, decided by brokerd and answered from the artifacts. */
function appendPage(turn: Turn, call: LoggedCall, resolved: Run, response: Response): Result<null> {
  const { file } = turn.session;
  const args = PageArguments.safeParse(resolved.args);
  const { tool } = resolved;
  const refuse = (code: ErrorCode, text: string) => appendOwn(turn, call, { tool, code, text });
  if (tool !== "read_result" || !args.success) {
    return refuse("tool-unknown", `${tool} is not known here`);
  }
  const source = file.records.find((record): record is ToolResult =>
    record.kind === "tool_result" && record.call === args.data.call
  );
  if (source === undefined || source.artifact === null) {
    const why = source === undefined ? "has no result in this session" : "was shown in full";
    return refuse("not-found", `The call ${args.data.call} ${why}.`);
  }
  const bytes = file.artifact(source.artifact);
  if (!bytes.ok) return refuse(bytes.code, bytes.detail);
  const label = join(response.label, { class: source.class, untrusted: source.untrusted });
  const limit = Math.min(args.data.limit, turn.house.config.tools.result_bytes);
  const { offset } = args.data;
  const content = shownPage({ tool: source.tool, label, bytes: bytes.value, offset, limit });
  const { audit } = response;
  return appendResult(turn, call, { tool, content, ...label, outcome: "done", audit });
}

type Made = Partial<ToolResult> & Pick<ToolResult, "tool" | "content" | "outcome">;

/** Appends a call's result; what `made` leaves out is unknown or, for the label, the session's own. */
function appendResult(turn: Turn, call: LoggedCall, made: Made): Result<null> {
  return turn.session.file.append({
    kind: "tool_result",
    turn: turn.turn,
    call: call.call,
    ...turn.session.file.label(),
    code: null,
    artifact: null,
    bytes: encodeUtf8(made.content).length,
    audit: null,
    container: null,
    image: null,
    ...made,
    tool: made.tool.slice(0, 256).toWellFormed(),
  });
}

type Own = { readonly tool: string; readonly code: ErrorCode; readonly text: string };

/** loopd's own words about a call that was not made. */
function appendOwn(turn: Turn, call: LoggedCall, { tool, code, text }: Own): Result<null> {
  const content = neutraliseMarkup(text);
  return appendResult(turn, call, { tool, code, outcome: "corrective", content });
}

/** Gives every call that will not be made a result that says so. */
export function answerUnanswered(
  turn: Turn,
  calls: readonly LoggedCall[],
  code: ErrorCode,
): Result<null> {
  for (const call of calls) {
    const text = `${call.name} was not called. ${ERRORS[code].what}`;
    const done = appendOwn(turn, call, { tool: call.name, code, text });
    if (!done.ok) return done;
  }
  return ok(null);
}
