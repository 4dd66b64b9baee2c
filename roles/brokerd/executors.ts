// Runs what a plan says, where it says. Nobody comes here without a plan that was taken out of a
// decision; nothing here decides anything.
import { type Clock, isoTime } from "../../shared/clock/clock.ts";
import type { Label } from "../../shared/labels/label.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import { assertNever, type Err, err, ok, type Result } from "../../shared/results/result.ts";
import type { Secret } from "../../shared/secrets/secret_store.ts";
import { canonicalText, encodeCanonical, encodeUtf8, toBase64 } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import type { MEMORY_CALL } from "../../shared/wire/memory.ts";
import type { NewAuditRecord } from "./audit_records.ts";
import { searchTools, type Tools } from "./catalog.ts";
import type { Plan } from "./plan.ts";
import { toolFlags } from "./runtime/argv.ts";
import type { RunIo, RunOutcome, Runtime } from "./runtime/plan.ts";
import type { RecordRequest, WayAsked, WayOut } from "./way_out.ts";

/** What became of an effect, apart from the output that was handed on while it ran. */
export type Effect = {
  readonly outcome: "done" | "failed" | "unknown";
  readonly code: string | null;
  readonly message: string;
  /** The label that whoever ran it gave the output; only joined, never believed to be lower. */
  readonly label: Label;
  readonly isCut: boolean;
  readonly container: string | null;
  /** For the role's log alone, never for the model: what the runtime or the tool complained of. */
  readonly log: string;
};

type MemoryReply = BodyOf<(typeof MEMORY_CALL)["replies"][number]>;

export type Executors = {
  readonly clock: Clock;
  readonly tools: Tools;
  readonly runtime: Runtime;
  /** Whether identity edits are queued for the owner's review instead of made. */
  readonly stagesEdits: boolean;
  /** Asks memoryd; the result's text is handed to `onOutput`. */
  readonly memory: (
    request: BodyOf<(typeof MEMORY_CALL)["request"]>,
    args: Uint8Array,
    io: RunIo,
  ) => Promise<Result<MemoryReply>>;
  /** Opens a call's way to its origins. */
  readonly egress: (asked: WayAsked, record: RecordRequest) => Promise<Result<WayOut>>;
  /** Appends to the audit log. */
  readonly record: (record: NewAuditRecord) => Result<unknown>;
  readonly secret: (name: string) => Result<Secret>;
};

const PUBLIC: Label = { class: "public", untrusted: false };

const DONE: Effect = {
  outcome: "done",
  code: null,
  message: "",
  label: PUBLIC,
  isCut: false,
  container: null,
  log: "",
};

function failed(code: string, message: string): Effect {
  return { ...DONE, outcome: "failed", code, message };
}

/** Runs a plan to its end. Never throws for a reason outside this process. */
export async function execute(executors: Executors, plan: Plan, io: RunIo): Promise<Effect> {
  switch (plan.where) {
    case "container":
      return await inContainer(executors, plan, io);
    case "memoryd":
      return await inMemoryd(executors, plan, io);
    case "brokerd":
      return here(executors, plan, io);
    case "caller":
      return failed("internal", "The caller runs this itself");
    default:
      return assertNever(plan.where);
  }
}

async function inContainer(executors: Executors, plan: Plan, io: RunIo): Promise<Effect> {
  const { runtime, tools } = executors;
  const tool = tools.find(plan.tool);
  if (tool === null || tool.sha256 !== plan.tool_sha256 || plan.image === null) {
    return failed("catalog-mismatch", "The tool is not the one that was decided on");
  }
  const program = tool.manifest.programs === true ? programOf(plan.args.argv) : null;
  if (program === "") return failed("arguments_invalid", "argv begins with a plain absolute path");
  // Grants that name different images agree on none, and the toolkit's own is for no program.
  if (program !== null && plan.image === tool.image) {
    return failed("grants_invalid", "Grants of the owner name different images for this command");
  }
  const secrets = secretsOf(executors, plan);
  if (!secrets.ok) return failed(secrets.code, "The secret that the grant names cannot be read");
  const way = await wayOut(executors, plan, secrets.value, tool.manifest.log_payload === true);
  if (!way.ok) return { ...failed(way.code, ERRORS["egress-unavailable"].what), log: way.detail };
  const mounts = plan.mounts.map(({ path, write }) => ({ hostPath: path, write }));
  const ran = await runtime.run({
    callId: plan.call,
    tool: plan.tool,
    image: plan.image,
    argsJson: canonicalText(plan.inner_args),
    secretsJson: secrets.value.stdin,
    mounts,
    map: mounts.length > 0 ? "owner" : "blind",
    limits: plan.limits,
    egressFolder: way.value?.folder ?? null,
    flags: toolFlags(tool.manifest, mounts, plan.hosts, program),
  }, io).finally(() => way.value?.close());
  return ran.ok ? effectOf(ran.value) : failed(ran.code, ran.detail);
}

/** The program that a command runs; empty when it is not named by a plain absolute path. */
function programOf(argv: unknown): string {
  const first: unknown = Array.isArray(argv) ? argv[0] : null;
  const isPlain = typeof first === "string" &&
    /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._+-]+)+$/.test(first);
  return isPlain && first !== "/bin/deno" ? first : "";
}

type GivenSecrets = {
  /** JSON for the call's standard input. */
  readonly stdin: string | null;
  readonly inject: WayAsked["inject"];
};

function secretsOf(executors: Executors, plan: Plan): Result<GivenSecrets> {
  if (plan.secret === null) return ok({ stdin: null, inject: null });
  const { name, as } = plan.secret;
  const secret = executors.secret(name);
  if (!secret.ok) return secret;
  const value = secret.value.reveal();
  if (as === "stdin") return ok({ stdin: canonicalText({ [name]: value }), inject: null });
  return ok({ stdin: null, inject: { header: as.slice("header:".length), value } });
}

/** The call's way out, or null when its plan names no host. Each request goes into the audit log. */
async function wayOut(
  { egress, record }: Executors,
  { call, session, hosts }: Plan,
  { inject }: GivenSecrets,
  log_payload: boolean,
): Promise<Result<WayOut | null>> {
  if (hosts.length === 0) return ok(null);
  return await egress(
    { call, origins: [...hosts], inject, log_payload },
    ({ n, ...line }, body) => {
      const said = { session, call, request: n, ...line };
      return body === null
        ? record({ kind: "request", ...said })
        : record({ kind: "payload", ...said, body: toBase64(body) });
    },
  );
}

const CODES = {
  ok: null,
  tool_failed: "tool-failed",
  timeout: "tool-timeout",
  output_capped: "output-capped",
  killed: "withdrawn",
  could_not_start: "container-not-started",
} as const satisfies Record<RunOutcome["status"], string | null>;

function effectOf({ status, code, message, containerName, log }: RunOutcome): Effect {
  return {
    outcome: status === "ok" ? "done" : "failed",
    code: code ?? CODES[status],
    message: status === "killed" ? "The call was ended; part of it may have happened" : message,
    label: PUBLIC,
    isCut: status === "output_capped",
    container: status === "could_not_start" ? null : containerName,
    log,
  };
}

async function inMemoryd(executors: Executors, plan: Plan, io: RunIo): Promise<Effect> {
  const tool = plan.tool === "recall" ? "recall" : "memory";
  const { session, call, label } = plan;
  const request = { session, call, tool, label, staged: executors.stagesEdits } as const;
  const reply = await executors.memory(request, encodeCanonical(plan.args), io);
  if (!reply.ok) return lostMemory(reply, tool);
  const { outcome, code, label: given } = reply.value;
  return { ...DONE, outcome: outcome === "done" ? "done" : "failed", code, label: given };
}

/** A write whose answer was lost may have happened; one that never left, or was refused, did not. */
function lostMemory(failure: Err, tool: "recall" | "memory"): Effect {
  const isLost = failure.code.startsWith("frame-") || failure.code === "peer-silent";
  const effect = failed(failure.code, failure.detail);
  if (!isLost || tool === "recall") return effect;
  return { ...effect, outcome: "unknown", code: "outcome_unknown" };
}

function here(executors: Executors, plan: Plan, io: RunIo): Effect {
  if (plan.tool === "clock") {
    const text = clockText(executors.clock.nowUnixMs(), plan.args.timezone);
    if (!text.ok) return failed("arguments_invalid", text.detail);
    io.onOutput(encodeUtf8(text.value));
    return DONE;
  }
  const query = typeof plan.args.query === "string" ? plan.args.query : "";
  const found = searchTools(executors.tools, query).slice(0, 10).map(({ manifest }) => ({
    name: manifest.name,
    description: manifest.description,
    parameters: manifest.parameters,
  }));
  io.onOutput(encodeUtf8(
    found.length === 0
      ? `No tool fits "${query}"`
      : found.map((one) => canonicalText(one)).join("\n"),
  ));
  return DONE;
}

function clockText(nowUnixMs: number, timezone: unknown): Result<string> {
  if (timezone === undefined) return ok(isoTime(nowUnixMs));
  try {
    const local = new Intl.DateTimeFormat("en-GB", {
      timeZone: String(timezone),
      dateStyle: "full",
      timeStyle: "long",
    }).format(nowUnixMs);
    return ok(`${isoTime(nowUnixMs)} is ${local}`);
  } catch {
    // Intl throws a RangeError on a name it does not know.
    return err("request-invalid", `There is no time zone ${String(timezone)}`);
  }
}
