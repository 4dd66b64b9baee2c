// What `list_dir` says about itself: one folder, listed. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "list_dir",
  description:
    "Lists a folder of the owner's, one entry a line: type, size in bytes, name. Links are shown, never followed.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Absolute path of the folder", maxLength: 4_096 },
      depth: {
        type: "integer",
        description: "Levels of folders to show; 1 when left out",
        minimum: 1,
        maximum: 8,
      },
      max: {
        type: "integer",
        description: "Entries to show at most; 500 when left out",
        minimum: 1,
        maximum: 5_000,
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
  limits: { timeout_s: 20, output_bytes: 1_048_576, memory_mb: 128, pids: 64 },
  summarise: false,
};
