// The program of the tool `edit_file`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { editFile } from "./edit_file.ts";

await runTool(editFile);
