// What `search_files` says about itself: one folder, searched. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "search_files",
  description:
    "Searches a folder of the owner's for a plain text (path:line:text) or, without a text, for file names.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Absolute path of the folder", maxLength: 4_096 },
      text: {
        type: "string",
        description: "Text to find within one line, taken as it is",
        minLength: 1,
        maxLength: 500,
      },
      names: {
        type: "string",
        description: "Only files whose name matches, with * and ?, such as *.md",
        minLength: 1,
        maxLength: 200,
      },
      ignore_case: { type: "boolean", description: "Whether upper and lower case are the same" },
      max: {
        type: "integer",
        description: "Lines to show at most; 200 when left out",
        minimum: 1,
        maximum: 2_000,
      },
    },
    required: ["path"],
    additionalProperties: false,
  },
  paths: [{ argument: "path", need: "folder", write: false }],
  effect: "none",
  network: false,
  scratch: false,
  env: [],
  limits: { timeout_s: 30, output_bytes: 1_048_576, memory_mb: 256, pids: 64 },
  summarise: true,
};
