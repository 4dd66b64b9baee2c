// Starts the one Worker, with what it may reach spelled out; everything not named is refused to it.
import type { WorkerPort } from "./index_client.ts";

/** What the Worker may reach below an absolute home folder. */
export function workerPermissions(
  home: string,
): { readonly read: string[]; readonly write: string[] } {
  return {
    read: [
      `${home}/sessions`,
      `${home}/memory/notes.md`,
      `${home}/memory/purged.jsonl`,
      `${home}/index`,
    ],
    write: [`${home}/index`],
  };
}

/** Starts the search Worker for an absolute home folder. */
export function startWorker(home: string): WorkerPort {
  const worker = new Worker(new URL("./search_worker.ts", import.meta.url), {
    type: "module",
    deno: { permissions: workerPermissions(home) },
  });
  return {
    post: (message) => worker.postMessage(message),
    listen: (onMessage, onError) => {
      worker.addEventListener("message", (event) => onMessage(event.data));
      worker.addEventListener("error", (event) => {
        event.preventDefault();
        onError(event.message);
      });
    },
    end: () => worker.terminate(),
  };
}
