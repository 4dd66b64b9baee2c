// The tools every session declares, in a form that costs few tokens. Everything else is
// found through find_tool and called through call_tool, so this list never grows with the toolkit.

export type Schema = { readonly [key: string]: unknown };
export interface KnownTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Schema;
}

/** The one way to every tool that is not declared. */
export const CALL_TOOL = "call_tool";

const text = (description: string, maxLength: number) => ({
  type: "string",
  minLength: 1,
  maxLength,
  description,
});

function object(properties: Schema, required: readonly string[]): Schema {
  return { type: "object", properties, required, additionalProperties: false };
}

const entry = (description: string) => text(description, 4_000);
const flag = { type: "boolean" };

/** In the order in which the model sees them. */
export const CORE_TOOLS: readonly KnownTool[] = [
  {
    name: "clock",
    description: "The date and time now",
    parameters: object({ timezone: text("Like Europe/Berlin; else UTC", 64) }, []),
  },
  {
    name: "recall",
    description: "Search earlier sessions and notes for words",
    parameters: object({
      query: text("Words to look for", 500),
      k: { type: "integer", minimum: 1, maximum: 10, description: "Hits at most; else 5" },
    }, ["query"]),
  },
  {
    name: "memory",
    description: "Write to memory. note: text. Edits of one file, entries named by their whole " +
      "text: add text; replace old, text; remove old; consolidate entries, each entry once",
    parameters: object({
      action: { type: "string", enum: ["note", "add", "replace", "remove", "consolidate"] },
      file: { type: "string", enum: ["memory", "user"], description: "For every edit" },
      text: entry("The note or new entry"),
      old: entry("An entry there is"),
      entries: {
        type: "array",
        maxItems: 200,
        items: object(
          { old: entry("An entry"), text: entry("New text"), keep: flag, move: flag, drop: flag },
          [],
        ),
      },
    }, ["action"]),
  },
  {
    name: "find_tool",
    description: "Find a tool by what it does; shows its name and arguments",
    parameters: object({ query: text("What the tool should do", 200) }, ["query"]),
  },
  {
    name: CALL_TOOL,
    description: "Call a tool that find_tool has shown",
    parameters: object({
      name: text("The tool's name", 64),
      arguments: { type: "string", description: "The tool's arguments as JSON text" },
    }, ["name", "arguments"]),
  },
];

/** The `tools` array as it is sent. */
export function toolsArray(): { [key: string]: unknown }[] {
  return CORE_TOOLS.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description, parameters },
  }));
}
