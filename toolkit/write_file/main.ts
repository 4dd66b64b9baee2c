// The program of the tool `write_file`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { writeFile } from "./write_file.ts";

await runTool(writeFile);
