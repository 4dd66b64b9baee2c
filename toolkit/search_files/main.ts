// The program of the tool `search_files`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { searchFiles } from "./search_files.ts";

await runTool(searchFiles);
