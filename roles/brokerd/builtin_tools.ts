// The tools that need no container: what the model sees of them, as a catalogue of their own. Where
// each one runs is decided here and nowhere else.
import type { Manifest } from "../../shared/tool/manifest.ts";

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

const INSIDE = {
  paths: [],
  network: false,
  scratch: false,
  env: [],
  limits: { timeout_s: 30, output_bytes: 262_144, memory_mb: 64, pids: 64 },
  summarise: false,
};

const recall: Manifest = {
  ...INSIDE,
  name: "recall",
  description:
    "Searches past sessions and notes for words and returns short passages with where each is from.",
  parameters: {
    type: "object",
    properties: {
      query: { type: "string", description: "Words to look for", minLength: 1, maxLength: 500 },
      k: { type: "integer", description: "Passages at most; default 5", minimum: 1, maximum: 10 },
    },
    required: ["query"],
    additionalProperties: false,
  },
  effect: "none",
};

const flag = (description: string) => ({ type: "boolean" as const, description });
const entryText = (description: string) => ({
  type: "string" as const,
  description,
  minLength: 1,
  maxLength: 4_000,
});

const memory: Manifest = {
  ...INSIDE,
  name: "memory",
  description:
    "Notes something seen, or edits the core notes: memory (own work) and user (the owner). Entries are named by their exact text. Edits take effect in the next session.",
  parameters: {
    type: "object",
    properties: {
      action: {
        type: "string",
        description:
          "note needs text; add file, text; replace file, old, text; remove file, old; " +
          "consolidate file, entries",
        enum: ["note", "add", "replace", "remove", "consolidate"],
        maxLength: 11,
      },
      file: {
        type: "string",
        description: "Which core notes",
        enum: ["memory", "user"],
        maxLength: 6,
      },
      text: entryText("The note, or the new entry"),
      old: entryText("The exact text of an entry there is"),
      entries: {
        type: "array",
        description: "Every entry of the file once, and new ones with text alone",
        items: {
          type: "object",
          properties: {
            old: entryText("The exact text of an entry there is"),
            text: entryText("Its rewrite, or a new entry"),
            keep: flag("Leave it as it is"),
            move: flag("Move it to the notes"),
            drop: flag("Drop it"),
          },
          required: [],
          additionalProperties: false,
        },
        maxItems: 200,
      },
    },
    required: ["action"],
    additionalProperties: false,
  },
  effect: "local",
};

const clock: Manifest = {
  ...INSIDE,
  name: "clock",
  description: "Tells the date and time, in UTC and in a time zone.",
  parameters: {
    type: "object",
    properties: {
      timezone: {
        type: "string",
        description: "IANA name such as Europe/Berlin; UTC when left out",
        minLength: 1,
        maxLength: 64,
      },
    },
    required: [],
    additionalProperties: false,
  },
  effect: "none",
};

const findTool: Manifest = {
  ...INSIDE,
  name: "find_tool",
  description: "Finds tools by words and returns their names, descriptions and parameters.",
  parameters: {
    type: "object",
    properties: {
      query: { type: "string", description: "What the tool should do", maxLength: 200 },
    },
    required: ["query"],
    additionalProperties: false,
  },
  effect: "none",
};

const readResult: Manifest = {
  ...INSIDE,
  name: "read_result",
  description: "Reads more of a tool result that was too long to show in full.",
  parameters: {
    type: "object",
    properties: {
      result: {
        type: "string",
        description: "The result's name, as its cut says",
        minLength: 12,
        maxLength: 64,
      },
      offset: {
        type: "integer",
        description: "First byte of the page",
        minimum: 0,
        maximum: 67_108_864,
      },
    },
    required: ["result", "offset"],
    additionalProperties: false,
  },
  effect: "none",
};

export const BUILT_IN_TOOLS: readonly Manifest[] = [clock, findTool, memory, readResult, recall];
