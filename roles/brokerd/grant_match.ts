// Rules on one question: may this tool be called with these arguments in this session? Pure.
//
// 1. Denial is what is left when nothing else holds.
// 2. A `deny` looks at constraints alone, never at labels or expiry, and matches when any value of the
//    call falls under it, or a folder that the call would open holds something under it.
// 3. An allowing grant counts only when every one of its constraints holds for every value.
// 4. A higher label, or a problem file, never widens the verdict; but one built-in tool does less under
//    a higher label, and then need not ask.
// 5. When several grants fit alike, the call gets the strictest of what they say, in any order.
import { classWithin, coversLabel, join, type Label } from "../../shared/labels/label.ts";
import { globMatches } from "../../shared/text/glob.ts";
import { looksLikeHttp, readHttpUrl } from "../../shared/url/origin.ts";
import { isBuiltInName } from "./builtin_tools.ts";
import type { AllowGrant, DenyGrant, Grant, GrantLimits } from "./grant_schema.ts";
import { type Reason, REASONS } from "./reasons.ts";

/** A path that a call names. All are absolute; links are resolved as far as the path exists. */
export type NamedPath = {
  readonly argument: string;
  /** As the caller wrote it. */
  readonly asked: string;
  /** What the argument leads to. */
  readonly target: string;
  /** What the call's container would be given: the target, or the folder of a new file. */
  readonly opened: string;
  readonly opensFolder: boolean;
  readonly write: boolean;
};

export type JsonObject = { readonly [key: string]: unknown };

export type Question = {
  readonly tool: string;
  readonly args: JsonObject;
  readonly paths: readonly NamedPath[];
  /** Whether the tool speaks to anything outside its container. */
  readonly network: boolean;
  readonly job: string | null;
  readonly label: Label;
  readonly nowUnixMs: number;
  readonly isStopped: boolean;
  /** Calls of this tool that were let through before, in this turn and on this day. */
  readonly used: { readonly turn: number; readonly day: number };
};

/** The grants in force. A tool with a problem file, or every tool, may use built-in grants only. */
export type GrantSet = {
  readonly grants: readonly Grant[];
  readonly blockedTools: ReadonlySet<string>;
  readonly isAllBlocked: boolean;
  readonly defaultLimits: { readonly calls_per_turn: number; readonly calls_per_day: number };
};

/** What one grant said. */
export type Finding = { readonly grant: string; readonly said: "auto" | "ask" | "deny" | Reason };

export type Verdict =
  | {
    readonly verdict: "auto" | "ask";
    /** The first that fits, with the strictest of what all that fit say beside limits. */
    readonly grant: AllowGrant;
    readonly limits: readonly GrantLimits[];
    readonly findings: readonly Finding[];
  }
  | {
    readonly verdict: "deny";
    readonly code: Reason;
    /** The grant that denied, when one did. */
    readonly grant: Grant | null;
    readonly findings: readonly Finding[];
  };

/** Of several grants that miss, the one with the later code missed nearest. */
const NEARNESS = Object.keys(REASONS);

/** The verdict on `question`. No file touches the grants of a built-in tool. */
export function evaluate(set: GrantSet, question: Question): Verdict {
  const deny = (code: Reason, grant: Grant | null, findings: readonly Finding[]): Verdict => ({
    verdict: "deny",
    code,
    grant,
    findings,
  });
  if (question.isStopped) return deny("stopped", null, []);
  const isBlocked = set.isAllBlocked || set.blockedTools.has(question.tool);
  if (isBlocked && !isBuiltInName(question.tool)) return deny("grants_invalid", null, []);
  const findings: Finding[] = [];
  // An origin that is denied is none that a call to another one may be led to.
  const barred: string[] = [];
  const allowing: { grant: AllowGrant; said: "auto" | "ask" }[] = [];
  let nearest: Reason = "no_grant";
  let denying: Grant | null = null;
  for (const grant of set.grants) {
    if (grant.tool !== question.tool) continue;
    if (grant.mode === "deny") {
      if (servesJob(grant, question)) barred.push(...grant.hosts);
      if (!denies(grant, question)) continue;
      denying ??= grant;
      findings.push({ grant: grant.name, said: "deny" });
      continue;
    }
    const said = judge(grant, question, set.defaultLimits);
    findings.push({ grant: grant.name, said });
    if (said === "auto" || said === "ask") allowing.push({ grant, said });
    else if (NEARNESS.indexOf(said) > NEARNESS.indexOf(nearest)) nearest = said;
  }
  if (denying !== null) return deny("denied_by_grant", denying, findings);
  const said = allowing.some((one) => one.said === "auto") ? "auto" : "ask";
  const fitting = allowing.filter((one) => one.said === said).map((one) => one.grant);
  const [first] = fitting;
  if (first === undefined) return deny(nearest, null, findings);
  const strict = fitting.reduce(strictest, first);
  const grant = { ...strict, hosts: strict.hosts.filter((host) => !barred.includes(host)) };
  return { verdict: said, grant, limits: fitting.map((one) => one.limits), findings };
}

/** `a` with the stricter word of both; a secret or an image is used only when both name it. */
function strictest(a: AllowGrant, b: AllowGrant): AllowGrant {
  const label = join(
    { class: a.result_class, untrusted: a.untrusted },
    { class: b.result_class, untrusted: b.untrusted },
  );
  const { secret, image, ...rest } = a;
  const isAgreed = secret?.name === b.secret?.name && secret?.as === b.secret?.as;
  return {
    ...rest,
    ...(isAgreed && secret !== undefined ? { secret } : {}),
    ...(image !== undefined && image === b.image ? { image } : {}),
    hosts: a.hosts.filter((host) => b.hosts.includes(host)),
    result_class: label.class,
    untrusted: label.untrusted,
    approver: a.approver === "local" ? a.approver : b.approver,
  };
}

function judge(
  grant: AllowGrant,
  question: Question,
  defaults: GrantSet["defaultLimits"],
): "auto" | "ask" | Reason {
  if (grant.expires !== undefined && grant.expires <= question.nowUnixMs) return "expired";
  if (!servesJob(grant, question)) return "no_grant";
  if (grant.above !== undefined && coversLabel(grant.above, question.label)) return "no_grant";
  const path = question.paths.map((one) => pathMiss(grant, one)).find((miss) => miss !== null);
  if (path !== undefined) return path;
  if (!hostsHold(grant, question)) return "host_not_granted";
  if (!patternsHold(grant, question) || !commandsHold(grant, question)) return "pattern_mismatch";
  if (!classWithin(question.label.class, grant.max_taint)) return "taint_exceeds";
  if (question.label.untrusted && grant.when_untrusted === "deny") return "untrusted_session";
  const perTurn = grant.limits.calls_per_turn ?? defaults.calls_per_turn;
  const perDay = grant.limits.calls_per_day ?? defaults.calls_per_day;
  if (question.used.turn >= perTurn || question.used.day >= perDay) return "limit_reached";
  return question.label.untrusted && grant.when_untrusted === "ask" ? "ask" : grant.mode;
}

function servesJob({ jobs }: Grant, { job }: Question): boolean {
  return jobs === undefined || (job !== null && jobs.includes(job));
}

/** Whether `inner` is `outer` or lies below it; both absolute. */
export function covers(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer === "/" ? "/" : `${outer}/`);
}

function pathMiss(grant: AllowGrant, path: NamedPath): Reason | null {
  const isCovered = grant.real_paths.some((real) =>
    covers(real, path.opened) && covers(real, path.target)
  );
  if (!isCovered) return "path_outside";
  return path.write && !grant.write ? "path_read_only" : null;
}

function hostsHold(grant: AllowGrant, question: Question): boolean {
  if (!question.network) return true;
  return grant.hosts.length > 0 &&
    urlsIn(question.args).every((url) => grant.hosts.includes(readHttpUrl(url)?.origin ?? ""));
}

function patternsHold(grant: AllowGrant, question: Question): boolean {
  return Object.entries(grant.patterns ?? {}).every(([argument, globs]) => {
    const texts = textsOf(question.args[argument]);
    // What is left out or empty holds only where the grant says so with "".
    if (texts.length === 0) return globs.includes("");
    return texts.flatMap(spellings).every((text) => globs.some((glob) => globMatches(glob, text)));
  });
}

/** A command is an array, matched element by element; text is never split into one. */
function commandsHold(grant: AllowGrant, question: Question): boolean {
  if (grant.commands === undefined) return question.args.argv === undefined;
  return grant.commands.some((command) => commandMatches(command, question.args));
}

function commandMatches(command: readonly string[], args: JsonObject): boolean {
  const argv = args.argv;
  if (!Array.isArray(argv) || argv.length !== command.length) return false;
  return command.every((glob, i) => {
    const word: unknown = argv[i];
    return typeof word === "string" && globMatches(glob, word);
  });
}

function denies(grant: DenyGrant, question: Question): boolean {
  if (!servesJob(grant, question)) return false;
  const isBare = grant.paths.length === 0 && grant.hosts.length === 0 &&
    grant.patterns === undefined && grant.commands === undefined;
  return isBare || denyPathHit(grant, question) || denyTextHit(grant, question);
}

/** A path as a disk may know it that keeps names without their case, or composed. */
export function folded(path: string): string {
  // Both ways: small letters that share a capital are one.
  return path.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");
}

function denyPathHit(grant: DenyGrant, question: Question): boolean {
  const forbidden = [...grant.paths, ...grant.real_paths].map(folded);
  return question.paths.some((path) =>
    forbidden.some((denied) =>
      [path.asked, path.target, path.opened].some((text) => covers(denied, folded(text))) ||
      (path.opensFolder && covers(folded(path.opened), denied))
    )
  );
}

function denyTextHit(grant: DenyGrant, question: Question): boolean {
  if (urlsIn(question.args).some((url) => isDenied(grant, url))) return true;
  const patterns = Object.entries(grant.patterns ?? {});
  const isMatch = patterns.some(([argument, globs]) => {
    const targets = question.paths.flatMap((one) => one.argument === argument ? one.target : []);
    const texts = textsOf(question.args[argument]).flatMap(spellings);
    return [...targets, ...texts].some((text) => globs.some((glob) => globMatches(glob, text)));
  });
  return isMatch || (grant.commands ?? []).some((one) => commandMatches(one, question.args));
}

/** The texts a pattern is held against: a text, each entry of a list, a number or a flag as JSON. */
function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number" || typeof value === "boolean") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(textsOf);
  return [];
}

/** A text as it is written and composed and, for a URL, as it is dialled and as its server may read it. */
function spellings(text: string): string[] {
  if (!looksLikeHttp(text)) return [text, text.normalize("NFC")];
  const url = new URL(text);
  // A fragment is never sent.
  url.hash = "";
  const { href } = url;
  const read = href.replace(/%[2-7][0-9a-f]/gi, (code) => decodeURIComponent(code));
  return [text, href, URL.canParse(read) ? new URL(read).href : read];
}

/** Every text of the arguments that a program could take for an http or https URL, and every `url`. */
function urlsIn(args: JsonObject): string[] {
  const named = textsOf(args.url);
  const others = Object.values(args).flatMap(textsOf).filter(looksLikeHttp);
  return [...new Set([...named, ...others])];
}

/** A URL that the house would not carry anyway is held against a deny as loosely as it can be read. */
function isDenied(grant: DenyGrant, text: string): boolean {
  const strict = readHttpUrl(text);
  if (strict !== null) return grant.hosts.includes(strict.origin);
  if (!looksLikeHttp(text)) return false;
  const { protocol, hostname, port } = new URL(text);
  const written = port !== "" ? port : protocol === "https:" ? "443" : "80";
  return grant.hosts.includes(`${protocol}//${hostname.replace(/\.+$/, "")}:${written}`);
}
