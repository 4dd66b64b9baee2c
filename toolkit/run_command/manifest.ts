// What `run_command` says about itself: one program of its image, run. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "run_command",
  description:
    "Runs one program with exact arguments, without a shell and without network, and returns what it prints.",
  parameters: {
    type: "object",
    properties: {
      argv: {
        type: "array",
        description: "The program's absolute path, then its arguments, one item each",
        items: { type: "string", maxLength: 65_536 },
        minItems: 1,
        maxItems: 64,
      },
      cwd: {
        type: "string",
        description: "Absolute path of a folder to run in, for reading",
        maxLength: 4_096,
      },
      workspace: {
        type: "string",
        description: "Absolute path of a folder to run in, for reading and writing",
        maxLength: 4_096,
      },
      stdin: { type: "string", description: "Text for its standard input", maxLength: 262_144 },
    },
    required: ["argv"],
    additionalProperties: false,
  },
  paths: [
    { argument: "cwd", need: "folder", write: false },
    { argument: "workspace", need: "folder", write: true },
  ],
  effect: "local",
  network: false,
  programs: true,
  scratch: true,
  env: [],
  limits: { timeout_s: 120, output_bytes: 1_048_576, memory_mb: 256, pids: 64 },
  summarise: true,
};
