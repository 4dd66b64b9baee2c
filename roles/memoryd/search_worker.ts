// The search Worker: holds the index, in a thread of its own, so that no search or rebuild keeps
// memoryd from answering its sockets. Its permissions are narrower than the role's: it reads the
// session logs, notes.md and the list of purges, writes the index folder, and has no socket.
import { systemClock } from "../../shared/clock/clock.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { assertNever, err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { openKeeper } from "./index_keeper.ts";
import { Ask, type Index, type OnStep, type Told } from "./index_messages.ts";

function tell(message: Told): void {
  const post: unknown = Reflect.get(globalThis, "postMessage");
  if (typeof post === "function") post.call(globalThis, message);
}

function answer(id: number, result: Result<unknown>): void {
  if (result.ok) tell({ kind: "done", id, value: result.value });
  else tell({ kind: "failed", id, code: result.code, detail: result.detail.slice(0, 2_000) });
}

const onStep = (id: number): OnStep => (step) => tell({ kind: "progress", id, step });

function opened({ home, max_class }: Extract<Ask, { kind: "open" }>): Index {
  return openKeeper({
    disk: denoDisk,
    clock: systemClock,
    home,
    maxClass: max_class,
    log: (line) => tell({ kind: "log", line: line.slice(0, 2_000) }),
    onStep: onStep(0),
  });
}

async function resultOf(
  keeper: Index,
  ask: Exclude<Ask, { kind: "open" }>,
): Promise<Result<unknown>> {
  switch (ask.kind) {
    case "search":
      return await keeper.search(ask.query, ask.k);
    case "update":
      await keeper.update(ask.session);
      return ok(null);
    case "reindex":
      return await keeper.reindex(onStep(ask.id));
    case "counts":
      return await keeper.counts();
    case "check":
      return await keeper.check();
    case "close":
      await keeper.close();
      return ok(null);
    default:
      return assertNever(ask);
  }
}

function serve(): void {
  let keeper: Index | undefined;
  globalThis.addEventListener("message", (event) => {
    const ask = Ask.parse(event instanceof MessageEvent ? event.data : null);
    if (ask.kind === "open") {
      keeper = opened(ask);
      return;
    }
    if (keeper === undefined) throw new TypeError("The Worker was asked before it was opened");
    resultOf(keeper, ask).catch((thrown) => err("internal", messageOf(thrown)))
      .then((result) => answer(ask.id, result));
  });
}

serve();
