// What `read_file` says about itself: one file, read. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "read_file",
  description: "Reads a file of the owner's and returns its exact bytes, all of it or one part.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "Absolute path of the file", maxLength: 4_096 },
      offset: {
        type: "integer",
        description: "Byte to start at; 0 when left out",
        minimum: 0,
        maximum: 1_099_511_627_776,
      },
      limit: {
        type: "integer",
        description: "Bytes to read at most; 262144 when left out",
        minimum: 1,
        maximum: 16_777_216,
      },
    },
    required: ["path"],
    additionalProperties: false,
  },
  paths: [{ argument: "path", need: "file", write: false }],
  effect: "none",
  network: false,
  scratch: false,
  env: [],
  limits: { timeout_s: 20, output_bytes: 1_048_576, memory_mb: 128, pids: 64 },
  summarise: true,
};
