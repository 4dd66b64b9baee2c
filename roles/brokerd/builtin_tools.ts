// The tools that need no container: what the model sees of them, as a catalogue of their own. Where
// each one runs is decided here and nowhere else.
import { count, flag, manifestOf, text as anyText } from "../../shared/tool/define.ts";
import type { Manifest, Parameters } from "../../shared/tool/manifest.ts";

/** Where a decided call of a tool runs. A tool that is not named here runs in a container. */
export const PLACES = {
  recall: "memoryd",
  memory: "memoryd",
  clock: "brokerd",
  find_tool: "brokerd",
  read_result: "caller",
} as const;
export type BuiltInName = keyof typeof PLACES;

/** Whether `tool` is built in; no grant file may name it. */
export function isBuiltInName(tool: string): tool is BuiltInName {
  return Object.hasOwn(PLACES, tool);
}

function builtIn(
  name: BuiltInName,
  description: string,
  properties: Parameters["properties"],
  required: string[],
): Manifest {
  const effect = name === "memory" ? "local" : "none";
  const limits = { timeout_s: 30, output_bytes: 262_144, memory_mb: 64 };
  return manifestOf({ name, description, properties, required, effect, limits });
}

const text: typeof anyText = (description, maxLength, more) =>
  anyText(description, maxLength, { minLength: 1, ...more });

export const BUILT_IN_TOOLS: readonly Manifest[] = [
  builtIn("clock", "Tells the date and time, in UTC and in a time zone.", {
    timezone: text("IANA name such as Europe/Berlin; UTC when left out", 64),
  }, []),
  builtIn(
    "find_tool",
    "Finds tools by words and returns their names, descriptions and parameters.",
    { query: text("What the tool should do", 500, { minLength: 0 }) },
    ["query"],
  ),
  builtIn(
    "memory",
    "Notes something seen, or edits the core notes: memory (own work) and user (the owner). Entries " +
      "are named by their exact text. Edits take effect in the next session.",
    {
      action: text(
        "note needs text; add file, text; replace file, old, text; remove file, old; " +
          "consolidate file, entries",
        16,
        { enum: ["note", "add", "replace", "remove", "consolidate"] },
      ),
      file: text("Which core notes", 16, { enum: ["memory", "user"] }),
      text: text("The note, or the new entry", 8_000),
      old: text("The exact text of an entry there is", 8_000),
      entries: {
        type: "array",
        description: "Every entry of the file once, and new ones with text alone",
        items: {
          type: "object",
          properties: {
            old: text("The exact text of an entry there is", 8_000),
            text: text("Its rewrite, or a new entry", 8_000),
            keep: flag("Leave it as it is"),
            move: flag("Move it to the notes"),
            drop: flag("Drop it"),
          },
          required: [],
          additionalProperties: false,
        },
        maxItems: 256,
      },
    },
    ["action"],
  ),
  builtIn("read_result", "Reads more of a tool result that was too long to show in full.", {
    result: text("The result's name, as its cut says", 64, { minLength: 12 }),
    offset: count("First byte of the page", 0, 67_108_864),
  }, ["result", "offset"]),
  builtIn(
    "recall",
    "Searches past sessions and notes for words and returns short passages with where each is from.",
    { query: text("Words to look for", 500), k: count("Passages at most; default 5", 1, 10) },
    ["query"],
  ),
];
