// The program of the tool `http_fetch`, run by Deno in a fresh container.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { httpFetch } from "./http_fetch.ts";

const headers = { accept: "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5" };

await runTool(httpFetch((url) => fetch(url, { headers, redirect: "manual" })));
