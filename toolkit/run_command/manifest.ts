// What `run_command` says about itself: one program of its image, run. Data only; the model sees name, description and parameters.
import { manifestOf, path, text } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "run_command",
  description:
    "Runs one program with exact arguments, without a shell and without network, and returns what it prints.",
  properties: {
    argv: {
      type: "array",
      description: "The program's absolute path, then its arguments, one item each",
      items: { type: "string", maxLength: 65_536 },
      minItems: 1,
      maxItems: 64,
    },
    cwd: path("Absolute path of a folder to run in, for reading"),
    workspace: path("Absolute path of a folder to run in, for reading and writing"),
    stdin: text("Text for its standard input", 262_144),
  },
  required: ["argv"],
  paths: [
    { argument: "cwd", need: "folder", write: false },
    { argument: "workspace", need: "folder", write: true },
  ],
  effect: "local",
  programs: true,
  scratch: true,
  limits: { timeout_s: 120, memory_mb: 256 },
  summarise: true,
});
