// What `write_file` says about itself: one file, written in its folder. Data only; the model sees name, description and parameters.
import { manifestOf, path, text } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "write_file",
  description:
    "Writes a text file of the owner's: creates a new one, replaces one as a whole, or appends to one.",
  properties: {
    path: path("Absolute path of the file; its folder must exist"),
    content: text("The text to write", 262_144),
    mode: text(
      "create (default) fails when the file exists, replace swaps all of it, append adds at its end",
      7,
      { enum: ["create", "replace", "append"] },
    ),
  },
  required: ["path", "content"],
  paths: [{ argument: "path", need: "new_file", write: true }],
  effect: "local",
  limits: { output_bytes: 65_536 },
});
