// What `http_fetch` says about itself: one page, read. Data only; the model sees name, description and parameters.
import type { Manifest } from "../../shared/tool/manifest.ts";

export const manifest: Manifest = {
  name: "http_fetch",
  description:
    "Gets a web page by GET and returns it as text: HTML as readable text with its links, other text as it is.",
  parameters: {
    type: "object",
    properties: {
      url: {
        type: "string",
        description: "The whole address, https://name/path",
        maxLength: 8_192,
      },
      max_bytes: {
        type: "integer",
        description: "Bytes of text to return at most; 65536 when left out",
        minimum: 1,
        maximum: 1_000_000,
      },
    },
    required: ["url"],
    additionalProperties: false,
  },
  paths: [],
  effect: "outside",
  network: true,
  scratch: false,
  env: [],
  limits: { timeout_s: 60, output_bytes: 1_048_576, memory_mb: 128, pids: 64 },
  summarise: true,
};
