// The program of the tool `read_file`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { readFile } from "./read_file.ts";

await runTool(readFile);
