// What `read_file` says about itself: one file, read. Data only; the model sees name, description and parameters.
import { count, manifestOf, path } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "read_file",
  description: "Reads a file of the owner's and returns its exact bytes, all of it or one part.",
  properties: {
    path: path("Absolute path of the file"),
    offset: count("Byte to start at; 0 when left out", 0, 1_099_511_627_776),
    limit: count("Bytes to read at most; 262144 when left out", 1, 16_777_216),
  },
  required: ["path"],
  paths: [{ argument: "path", need: "file", write: false }],
  summarise: true,
});
