// `recall` and `reindex`: what is remembered, and the index it is found through.
import { isoTime } from "../../shared/clock/clock.ts";
import { OWNER_RECALL, type RecallHit, REINDEX } from "../../shared/wire/memory.ts";
import {
  ask,
  askAndPrint,
  type Command,
  type Context,
  fail,
  form,
  misused,
  print,
  type Run,
  wholeNumber,
} from "./context.ts";
import { labelText } from "../../shared/labels/label.ts";
import { progressLine, shown, shownLines, tint } from "./terminal.ts";

const SOCKET = "owner-memory/admin";

function renderHit(context: Context, hit: RecallHit, index: number): string {
  const when = hit.time_unix_ms === null ? "" : `, ${isoTime(hit.time_unix_ms)}`;
  const head = `[${index + 1}] ${hit.source}${when}, ${hit.who} · ${hit.tag} · ${labelText(hit)}`;
  return `${tint(context.terminal, "bold", head)}\n  ${
    shownLines(hit.snippet).replaceAll("\n", "\n  ")
  }\n`;
}

const USAGE = "recall QUERY... [-k COUNT]";
const OPTIONS = { k: { type: "string", short: "k" } } as const;
const recall = form(USAGE, [1, Infinity], OPTIONS, async (context, { values, positionals }) => {
  const k = wholeNumber(values.k, 5, 1, 50);
  if (!k.ok) return fail(context, k);
  const query = positionals.join(" ");
  if (query === "") return misused(context, USAGE);
  const asked = { query: query.slice(0, 500), k: k.value };
  return await askAndPrint(
    context,
    SOCKET,
    OWNER_RECALL,
    asked,
    ({ hits }) =>
      hits.length === 0
        ? `Nothing found for ${shown(query)}\n`
        : hits.map((hit, i) => renderHit(context, hit, i)).join(""),
  );
});

export const RECALL: Command = {
  summary: "search what was said and noted, as the assistant would",
  forms: { "": recall },
};

const reindex: Run = async (context) => {
  const progress = progressLine(context.terminal);
  const reply = await ask(context, SOCKET, REINDEX, {}, {
    onEvent({ body: { logs, total_logs, records } }) {
      progress.show(`reindexing: ${logs} of ${total_logs} logs, ${records} records`);
    },
  });
  progress.clear();
  if (!reply.ok) return fail(context, reply);
  const { logs, records, notes, skipped } = reply.value.body;
  const left = skipped.map((line) => `skipped ${shown(line)}\n`).join("");
  const text = `reindexed: ${logs} logs, ${records} records, ${notes} notes\n${left}`;
  return print(context, reply.value.body, text);
};

export const REINDEX_COMMAND: Command = {
  summary: "build the index anew from the logs and notes",
  forms: { "": form("reindex", [0, 0], {}, reindex) },
};
