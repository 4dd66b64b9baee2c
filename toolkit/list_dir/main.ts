// The program of the tool `list_dir`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { listDir } from "./list_dir.ts";

await runTool(listDir);
