// What `edit_file` says about itself: exact words of one file, replaced. Data only; the model sees name, description and parameters.
import { flag, manifestOf, path, text } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "edit_file",
  description:
    "Replaces exact text in a file of the owner's. The old text must be there once, or all is true.",
  properties: {
    path: path("Absolute path of the file"),
    old: text("The exact text to replace, with its line breaks and blanks", 131_072, {
      minLength: 1,
    }),
    new: text("The text to put in its place; empty removes it", 131_072),
    all: flag("Replace it everywhere; false when left out"),
  },
  required: ["path", "old", "new"],
  paths: [{ argument: "path", need: "new_file", write: true }],
  effect: "local",
  limits: { output_bytes: 65_536 },
});
