// What `list_dir` says about itself: one folder, listed. Data only; the model sees name, description and parameters.
import { count, manifestOf, path } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "list_dir",
  description:
    "Lists a folder of the owner's, one entry a line: type, size in bytes, name. Links are shown, never followed.",
  properties: {
    path: path("Absolute path of the folder"),
    depth: count("Levels of folders to show; 1 when left out", 1, 8),
    max: count("Entries to show at most; 500 when left out", 1, 5_000),
  },
  required: ["path"],
  paths: [{ argument: "path", need: "folder", write: false }],
});
