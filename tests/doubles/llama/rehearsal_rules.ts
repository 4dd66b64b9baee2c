// What the rehearsal model understands: one rule per kind of wish, tried in order on the owner's
// text and on each of its lines, since the text may arrive with a heading around it.
import type { ChatRequest } from "./chat_request.ts";
import { isObject, type JsonObject, listOf, numberOf, textOf } from "./json_value.ts";

/** What the rules may answer with. */
export type Move =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "think"; readonly tokens: number; readonly text: string }
  | {
    readonly kind: "tool";
    readonly name: string;
    readonly args: { readonly [key: string]: unknown };
  };

type Rule = { readonly pattern: RegExp; readonly move: (m: RegExpMatchArray) => Move };

const MAX_THOUGHT_TOKENS = 20_000;

const tool = (name: string, args: JsonObject): Move => ({ kind: "tool", name, args });
/** A tool of the toolkit is reached through call_tool, its arguments being JSON text. */
const toolkit = (name: string, args: JsonObject): Move =>
  tool("call_tool", { name, arguments: JSON.stringify(args) });
const bare = (text: string | undefined) =>
  (text ?? "").trim().replace(/^["'`](.*)["'`]$/s, "$1").trim();
const path = (text: string | undefined) => bare((text ?? "").trim().replace(/[.?!,;]+$/, ""));
const question = (text: string | undefined) => bare((text ?? "").trim().replace(/[?!.\s]+$/, ""));
const remember = (file: "memory" | "user", text: string | undefined) =>
  tool("memory", { action: "add", file, text: bare(text) });

const RULES: readonly Rule[] = [
  {
    pattern: /^(?:please )?remember about me(?: that)?[:,]? (.+)$/is,
    move: (m) => remember("user", m[1]),
  },
  {
    pattern: /^(?:please )?remember(?: that)?[:,]? (.+)$/is,
    move: (m) => remember("memory", m[1]),
  },
  {
    pattern: /^(?:please )?(?:make a )?note(?: that|:) ?(.+)$/is,
    move: (m) => tool("memory", { action: "note", text: bare(m[1]) }),
  },
  {
    // Fits a file that holds this one entry: a consolidation names every entry.
    pattern: /^(?:please )?move (.+) out of (memory|user)$/is,
    move: (m) =>
      tool("memory", {
        action: "consolidate",
        file: m[2],
        entries: [{ old: bare(m[1]), move: true }],
      }),
  },
  {
    pattern: /^what (?:do|did) (?:you|i) (?:know|remember|tell you|say) about (.+)$/is,
    move: (m) => tool("recall", { query: question(m[1]), k: 5 }),
  },
  {
    pattern: /^recall (.+)$/is,
    move: (m) => tool("recall", { query: question(m[1]), k: 5 }),
  },
  {
    pattern: /^(?:please )?fetch (\S+)$/i,
    move: (m) => toolkit("http_fetch", { url: bare(m[1]) }),
  },
  {
    pattern: /^(?:please )?search (?:for )?(.+) in (\S+)$/i,
    move: (m) => toolkit("search_files", { path: path(m[2]), text: bare(m[1]) }),
  },
  {
    pattern: /^(?:please )?write (.+) to (\S+)$/is,
    move: (m) => toolkit("write_file", { path: path(m[2]), content: bare(m[1]) }),
  },
  {
    pattern: /^(?:please )?read (?:the file )?(\S+)$/i,
    move: (m) => toolkit("read_file", { path: path(m[1]) }),
  },
  {
    pattern: /^(?:please )?list (?:the )?(?:folder )?(\S+)$/i,
    move: (m) => toolkit("list_dir", { path: path(m[1]) }),
  },
  {
    pattern: /^(?:what(?:'s| is) the time|what time is it|what day is it)\b/i,
    move: () => tool("clock", {}),
  },
  {
    pattern: /^find (?:a |the )?tool(?: for| to)? (.+)$/is,
    move: (m) => tool("find_tool", { query: question(m[1]) }),
  },
  {
    pattern: /^every (morning|evening|day|hour|week)\b[,:]? ?(.*)$/is,
    move: (m) => ({ kind: "say", text: jobText(textOf(m[1]).toLowerCase(), bare(m[2])) }),
  },
  {
    pattern: /^think (?:for )?(\d+)/i,
    move: (m) => {
      const tokens = Math.min(Number(m[1]), MAX_THOUGHT_TOKENS);
      return { kind: "think", tokens, text: `That was a thought of ${tokens} tokens.` };
    },
  },
  {
    pattern: /\b(?:are|who|what) (?:are )?you\b|\breal model\b/i,
    move: () => ({
      kind: "say",
      text: "I am the rehearsal model: a small set of fixed rules, not a language model. " +
        "Set BOXMAKER_LLAMA_URL to your own llama-server, or run `sh deploy/bootstrap.sh model`, " +
        "and a real one answers here.",
    }),
  },
];

/** The move for the owner's text, or null when no rule fits it or any line of it. */
export function ruleFor(owner: string): Move | null {
  const lines = owner.split("\n").map((line) => line.replace(/^[>|\s]+/, "").trim());
  for (const text of [owner.trim(), ...lines]) {
    for (const rule of RULES) {
      const found = text.match(rule.pattern);
      if (found !== null) return rule.move(found);
    }
  }
  return null;
}

/** A tool that the text names outright, or the first one when a call is required. */
export function calledByName(owner: string, request: ChatRequest): Move | null {
  const functions = request.tools.map((entry) => entry["function"]).filter(isObject);
  const named = functions.find((fn) =>
    new RegExp(`\\b(?:call|use|run)\\b.*\\b${textOf(fn["name"])}\\b`, "is").test(owner)
  );
  const chosen = named ?? (request.toolChoice === "required" ? functions[0] : undefined);
  if (chosen === undefined) return null;
  return tool(textOf(chosen["name"]), leastArguments(chosen["parameters"]));
}

/** The smallest arguments that fit a schema's required members. */
function leastArguments(schema: unknown): JsonObject {
  if (!isObject(schema)) return {};
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const entries = listOf(schema["required"]).map((key) => {
    const name = textOf(key);
    return [name, leastValue(properties[name])] as const;
  });
  return Object.fromEntries(entries);
}

function leastValue(schema: unknown): unknown {
  if (!isObject(schema)) return "rehearsal";
  const [first] = listOf(schema["enum"]);
  if (first !== undefined) return first;
  switch (schema["type"]) {
    case "integer":
    case "number":
      return numberOf(schema["minimum"], 1);
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return leastArguments(schema);
    default:
      return "rehearsal";
  }
}

const SCHEDULES: Readonly<Record<string, string>> = {
  hour: "0 * * * *",
  day: "0 9 * * *",
  morning: "0 7 * * *",
  evening: "0 19 * * *",
  week: "0 7 * * 1",
};

function jobText(when: string, what: string): string {
  const prompt = what === "" ? "Say good morning." : what;
  const job = [
    `schedule = ${JSON.stringify(SCHEDULES[when] ?? "0 7 * * *")}`,
    'timezone = "Etc/UTC"',
    `prompt = ${JSON.stringify(prompt)}`,
    "needs = []",
    'deliver = "none"',
    "max_minutes = 10",
    'on_failure = "tell"',
    'catch_up = "skip"',
    "enabled = true",
  ];
  return [
    `I cannot start jobs myself; that is for you to decide. Save this as \`jobs/${when}.toml\` in`,
    "your home folder, with your own time zone, and it runs from then on:",
    "",
    "```toml",
    ...job,
    "```",
  ].join("\n");
}
