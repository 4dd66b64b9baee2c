// What `edit_file` says about itself: exact words of one file, replaced. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "edit_file",
  description:
    "Replaces exact text in a file of the owner's. The old text must be there once, or all is true.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Absolute path of the file", maxLength: 4_096 },
      old: {
        type: "string",
        description: "The exact text to replace, with its line breaks and blanks",
        minLength: 1,
        maxLength: 131_072,
      },
      new: {
        type: "string",
        description: "The text to put in its place; empty removes it",
        maxLength: 131_072,
      },
      all: { type: "boolean", description: "Replace it everywhere; false when left out" },
    },
    required: ["path", "old", "new"],
    additionalProperties: false,
  },
  paths: [{ argument: "path", need: "new_file", write: true }],
  effect: "local",
  network: false,
  scratch: false,
  env: [],
  limits: { timeout_s: 20, output_bytes: 65_536, memory_mb: 128, pids: 64 },
  summarise: false,
};
