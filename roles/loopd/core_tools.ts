// The tools every session declares, and the ones loopd itself knows beside them. Everything else is
// found through find_tool and called through call_tool, so this list never grows with the toolkit.

export type Schema = { readonly [key: string]: unknown };
export interface KnownTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Schema;
}

const text = (description: string, maxLength: number) => ({
  type: "string",
  minLength: 1,
  maxLength,
  description,
});

function object(properties: Schema, required: readonly string[]): Schema {
  return { type: "object", properties, required, additionalProperties: false };
}

/** In the order in which the model sees them. */
export const CORE_TOOLS: readonly KnownTool[] = [
  {
    name: "clock",
    description: "The date and time now",
    parameters: object({}, []),
  },
  {
    name: "recall",
    description: "Search earlier sessions and notes for words",
    parameters: object({
      query: text("Words to look for", 500),
      k: { type: "integer", minimum: 1, maximum: 10, description: "How many hits, 5 if left out" },
    }, ["query"]),
  },
  {
    name: "memory",
    description: "Write to memory: note keeps a dated note, add puts an entry into a memory file",
    parameters: object({
      action: { type: "string", enum: ["note", "add"] },
      file: { type: "string", enum: ["memory", "user"], description: "For add" },
      text: text("What to remember", 2_200),
    }, ["action", "text"]),
  },
  {
    name: "find_tool",
    description: "Find a tool by what it does; shows its name and arguments",
    parameters: object({ query: text("What the tool should do", 500) }, ["query"]),
  },
  {
    name: "call_tool",
    description: "Call a tool that find_tool has shown",
    parameters: object({
      name: text("The tool's name", 64),
      arguments: { type: "string", description: "The tool's arguments as JSON text" },
    }, ["name", "arguments"]),
  },
];

/** Called through call_tool and answered from this session's own files. */
export const READ_RESULT: KnownTool = {
  name: "read_result",
  description: "Read a page of a long result",
  parameters: object({
    result: {
      type: "string",
      pattern: "^[0-9a-f]{12,64}$",
      description: "The result's name, as its cut says",
    },
    offset: { type: "integer", minimum: 0, description: "First byte of the page" },
  }, ["result", "offset"]),
};

/** The `tools` array as it is sent. */
export function toolsArray(): { [key: string]: unknown }[] {
  return CORE_TOOLS.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description, parameters },
  }));
}
