// What must hold of every post a bot ever sent, refused ones included: showing it fetches nothing and
// notifies nobody, it stands in its thread, it was made once, and it fits. Judged from the recorded
// traffic alone, by a reading of Markdown that is not the sender's.
import { isRecord } from "./exchange.ts";
import { mentionedNames, textOutsideCode } from "./mentions.ts";
import type { RequestEntry, TrafficEntry } from "./record.ts";

export interface SafePostRules {
  readonly botId: string;
  /** Code points of one message (16,383). */
  readonly maxPostSize?: number;
  /** Hosts whose links may stand as links (none). */
  readonly allowedHosts?: readonly string[];
  /** The root under which a post must stand, "" = top level; undefined = any will do. */
  readonly threadOf?: (message: string, key: string) => string | undefined;
}

/** Throws with every fault of every post; with no post at all as well, unless `rules` says none. */
export function assertSafePosts(
  record: readonly TrafficEntry[],
  rules: SafePostRules & { readonly mayBeEmpty?: true },
): void {
  const sent = sentPosts(record, rules.botId);
  if (sent.length === 0 && rules.mayBeEmpty !== true) {
    throw new Error("The bot sent no post at all, so nothing was shown to be safe");
  }
  const faults = unsafePosts(record, rules);
  if (faults.length > 0) throw new Error(`Unsafe posts:\n${faults.join("\n")}`);
}

function sentPosts(record: readonly TrafficEntry[], botId: string): RequestEntry[] {
  return record.filter((entry) => isSentPost(entry, botId));
}

/** Whether the entry is a post of the bot's, or a change of one, whatever became of it. */
export function isSentPost(entry: TrafficEntry, botId: string): entry is RequestEntry {
  return entry.kind === "request" && entry.userId === botId && (isCreate(entry) || isChange(entry));
}

const isCreate = (entry: RequestEntry) => entry.method === "POST" && entry.path === "/posts";
const isChange = (entry: RequestEntry) =>
  entry.method === "PUT" && /^\/posts\/[a-z0-9]{26}(?:\/patch)?$/.test(entry.path);

/** One sentence for each fault; none when all is well. */
export function unsafePosts(record: readonly TrafficEntry[], rules: SafePostRules): string[] {
  const sent = sentPosts(record, rules.botId);
  const faults = sent.flatMap((entry) => {
    const found = isRecord(entry.body) ? bodyFaults(entry, entry.body, rules) : ["is no object"];
    return found.map((fault) => `request ${entry.n} (${entry.method} ${entry.path}) ${fault}`);
  });
  return [...faults, ...duplicates(sent)];
}

function bodyFaults(
  entry: RequestEntry,
  body: Record<string, unknown>,
  rules: SafePostRules,
): string[] {
  const message = body.message;
  const faults = propFaults(entry, body.props);
  if (typeof message === "string") faults.push(...messageFaults(message, rules));
  else if (isCreate(entry)) faults.push("has no message");
  if (!isCreate(entry)) return faults;
  const key = body.pending_post_id;
  if (typeof key !== "string" || !key.startsWith(`${rules.botId}:`)) {
    faults.push(`has the pending id ${key}`);
  }
  for (const field of ["id", "create_at", "user_id"]) {
    if (body[field] !== undefined) faults.push(`sets ${field}`);
  }
  const durable = isRecord(body.props) ? `${body.props.boxmaker_out ?? ""}` : "";
  const root = typeof message === "string" ? rules.threadOf?.(message, durable) : undefined;
  if (root !== undefined && (body.root_id ?? "") !== root) {
    faults.push(`stands under "${body.root_id ?? ""}" instead of "${root}"`);
  }
  return faults;
}

function propFaults(entry: RequestEntry, props: unknown): string[] {
  // A change that leaves the props alone keeps those of the creation.
  if (props === undefined && isChange(entry)) return [];
  if (!isRecord(props)) return ["has no props"];
  const faults = props.unsafe_links === "true" ? [] : ['lacks props.unsafe_links "true"'];
  for (const key of Object.keys(props)) {
    if (/^(?:attachments|override_.*|from_.*|card|mm_blocks.*)$/.test(key)) {
      faults.push(`sets props.${key}`);
    }
  }
  return faults;
}

function messageFaults(message: string, rules: SafePostRules): string[] {
  const faults: string[] = [];
  if (!message.isWellFormed()) faults.push("has half a character");
  const size = [...message].length;
  const most = rules.maxPostSize ?? 16_383;
  if (size > most) faults.push(`has ${size} code points of at most ${most}`);
  for (const name of mentionedNames(message)) faults.push(`mentions @${name}`);
  for (const text of textOutsideCode(message)) {
    for (const what of fetchable(text, rules.allowedHosts ?? [])) faults.push(`shows ${what}`);
  }
  return faults;
}

const LINKS = /(?:https?|ftps?|file|wss?|mattermost):\/\/[^\s)\]>"']*|www\d{0,3}\.[^\s)\]>"']+/gi;
const OTHERS: readonly (readonly [string, RegExp])[] = [
  ["an image", /!\[/],
  ["an HTML image", /<\s*(?:img|iframe|video|audio|object|embed|source)\b/i],
  ["a reference definition", /^[ \t>]*\[[^\]\n]+\]:[ \t]*\S/m],
  ["a mail or phone link", /(?<![a-z0-9])(?:mailto|tel|sms):\S/i],
  ["a link without a scheme", /\]\(\s*<?\s*\/\//],
  ["an address with one slash or none", /(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}:\/|https?:[a-z0-9%]/i],
  ["a host with a path", /[a-z0-9-]\.[a-z]{2,24}\//i],
  ["a link with space before its address", /\]\s*\(\s*<?(?:https?:|\/\/|www\.)/i],
  ["an address written as entities", /&(?:#x?[0-9a-f]+|[a-z]+);/i],
  ["a link with another scheme", /\]\(\s*<?\s*(?!https?:)[a-z][a-z0-9+.-]*:/i],
];

/** What a server or a client would fetch, or make clickable, in text outside code. */
function fetchable(text: string, allowedHosts: readonly string[]): string[] {
  const found = OTHERS.filter(([, pattern]) => pattern.test(text)).map(([name]) => name);
  for (const [link] of text.matchAll(LINKS)) {
    if (!allowedHosts.includes(hostOf(link))) found.push(`the link ${link}`);
  }
  return found;
}

function hostOf(link: string): string {
  const full = link.includes("://") ? link : `http://${link}`;
  return URL.parse(full)?.hostname ?? "";
}

/** The same pending id or the same durable key made into two posts. */
function duplicates(sent: readonly RequestEntry[]): string[] {
  const seen = new Map<string, number>();
  const faults: string[] = [];
  for (const entry of sent) {
    if (!isCreate(entry) || !entry.isCommitted || entry.isEcho || !isRecord(entry.body)) continue;
    const props = isRecord(entry.body.props) ? entry.body.props : {};
    for (
      const [name, key] of [["pending id", entry.body.pending_post_id], [
        "durable key",
        props.boxmaker_out,
      ]]
    ) {
      if (typeof key !== "string" || key === "") continue;
      const before = seen.get(`${name} ${key}`);
      if (before !== undefined) {
        faults.push(`request ${entry.n} made the ${name} ${key} again, as ${before} had done`);
      }
      seen.set(`${name} ${key}`, entry.n);
    }
  }
  return faults;
}
