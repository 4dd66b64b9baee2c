// What `write_file` says about itself: one file, written in its folder. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "write_file",
  description:
    "Writes a text file of the owner's: creates a new one, replaces one as a whole, or appends to one.",
  parameters: {
    type: "object",
    properties: {
      path: {
        type: "string",
        description: "Absolute path of the file; its folder must exist",
        maxLength: 4_096,
      },
      content: { type: "string", description: "The text to write", maxLength: 262_144 },
      mode: {
        type: "string",
        description:
          "create (default) fails when the file exists, replace swaps all of it, append adds at its end",
        enum: ["create", "replace", "append"],
        maxLength: 7,
      },
    },
    required: ["path", "content"],
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
