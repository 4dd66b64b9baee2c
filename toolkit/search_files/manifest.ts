// What `search_files` says about itself: one folder, searched. Data only; the model sees name, description and parameters.
import { count, flag, manifestOf, path, text } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "search_files",
  description:
    "Searches a folder of the owner's for a plain text (path:line:text) or, without a text, for file names.",
  properties: {
    path: path("Absolute path of the folder"),
    text: text("Text to find within one line, taken as it is", 500, { minLength: 1 }),
    names: text("Only files whose name matches, with * and ?, such as *.md", 200, { minLength: 1 }),
    ignore_case: flag("Whether upper and lower case are the same"),
    max: count("Lines to show at most; 200 when left out", 1, 2_000),
  },
  required: ["path"],
  paths: [{ argument: "path", need: "folder", write: false }],
  limits: { timeout_s: 30, memory_mb: 256 },
  summarise: true,
});
