// What memoryd answers on its three sockets. Every refusal of a tool call is an answer that the model
// can act on; only a request that brokerd, loopd or bxctl got wrong is an error.
import type { Clock } from "../../shared/clock/clock.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import {
  MEMORY_BLOCK,
  MEMORY_CALL,
  MEMORY_CHECK,
  MEMORY_STATUS,
  OWNER_RECALL,
  REINDEX,
  SESSION_UPDATED,
} from "../../shared/wire/memory.ts";
import { characters, IDENTITY_FILES, LIMITS } from "./entries.ts";
import type { Index } from "./index_messages.ts";
import type { MemoryStore } from "./memory_store.ts";
import { omissions } from "./file_check.ts";
import { fileRoutes, sure } from "./owner_requests.ts";
import { type Answer, parseArguments, refused, runMemory } from "./memory_tool.ts";
import { labelOf, ownerHit, RecallArguments, recallText, sourceOf } from "./recall.ts";

export type Parts = {
  readonly store: MemoryStore;
  readonly index: Index;
  readonly clock: Clock;
  readonly startedUnixMs: number;
  readonly warn: (line: string) => void;
  /** Ends the process; called when the disk's state is unknown, so that nobody is answered. */
  readonly end: (failure: Err) => never;
};

type Call = BodyOf<typeof MEMORY_CALL.request>;

/** The table of loop-memory/memory. */
export function loopRoutes(parts: Parts): Route[] {
  return [
    on(MEMORY_BLOCK, async (_body, io) => {
      const block = parts.store.block(IDENTITY_FILES);
      if (!block.ok) return block;
      const { text, omitted } = block.value;
      for (const { file, reason } of omitted) parts.warn(`${file}: ${reason}`);
      await io.chunk(encodeUtf8(text));
      return ok({ kind: "memory_block_reply", body: { omitted: [...omitted] } });
    }),
    on(SESSION_UPDATED, ({ session }) => {
      void parts.index.update(session);
      return ok({ kind: "ok", body: {} });
    }),
  ];
}

/** The table of broker-memory/memory. */
export function brokerRoutes(parts: Parts): Route[] {
  return [on(MEMORY_CALL, async (call, io) => {
    const answer = sure(
      parts,
      call.tool === "recall"
        ? await recall(parts, call, io.upload)
        : memory(parts, call, io.upload),
    );
    if (!answer.ok) return answer;
    const { text, ...result } = answer.value;
    await io.chunk(encodeUtf8(text));
    return ok({ kind: "memory_result", body: result });
  })];
}

function memory(parts: Parts, call: Call, upload: Uint8Array): Result<Answer> {
  const origin = { session: call.session, call: call.call, label: call.label };
  const answer = runMemory(parts.store, origin, call.staged ? "stage" : "apply", upload);
  if (answer.ok) void parts.index.update(null);
  return answer;
}

async function recall(parts: Parts, call: Call, upload: Uint8Array): Promise<Result<Answer>> {
  const args = parseArguments(RecallArguments, upload);
  if (!args.ok) return ok(refused(args));
  const { query, k } = args.value;
  const found = await parts.index.search(query, k);
  if (!found.ok) return ok(refused(found));
  const { hits } = found.value;
  void logged(parts, call, query, hits.map(sourceOf));
  const text = recallText(query, found.value);
  return ok({ outcome: "done", code: null, label: labelOf(hits), text });
}

/** Writes the recall's line when the answer is on its way, so that nobody waits for the disk. */
async function logged(parts: Parts, call: Call, query: string, hits: string[]): Promise<void> {
  const { session, call: id } = call;
  const line = { time_unix_ms: parts.clock.nowUnixMs(), session, call: id, query, hits };
  await parts.clock.sleep(0);
  const said = sure(parts, parts.store.logRecall(line));
  if (!said.ok) parts.warn(`A recall could not be logged: ${said.code}: ${said.detail}`);
}

/** The table of owner-memory/admin. */
export function ownerRoutes(parts: Parts): Route[] {
  return [
    ...fileRoutes(parts),
    on(MEMORY_STATUS, async () => ok({ kind: "memory_status", body: await status(parts) })),
    on(MEMORY_CHECK, async () => {
      const index = await parts.index.check();
      const found = [...parts.store.check(), ...index.ok ? [] : [index]];
      return ok({ kind: "memory_checked", body: { findings: found.slice(0, 200).map(told) } });
    }),
    on(REINDEX, async (_body, io) => {
      const made = await parts.index.reindex((body) => {
        void io.event({ kind: "reindex_progress", body });
      });
      if (!made.ok) return made;
      const { logs, rows, notes, skipped } = made.value;
      return ok({ kind: "reindexed", body: { logs, records: rows, notes, skipped } });
    }),
    on(OWNER_RECALL, async ({ query, k }) => {
      const found = await parts.index.search(query, k);
      if (!found.ok) return found;
      return ok({ kind: "recalled", body: { hits: found.value.hits.map(ownerHit) } });
    }),
  ];
}

const told = ({ code, detail }: Err) => ({ code, detail: detail.slice(0, 1_000) });

async function status(parts: Parts): Promise<BodyOf<(typeof MEMORY_STATUS.replies)[0]>> {
  const block = parts.store.block(IDENTITY_FILES);
  const counts = await parts.index.counts();
  const size = counts.ok ? counts.value : { rows: 0, notes: 0, logs: 0, skipped: [] };
  const problems = [
    ...[block, counts].filter((one) => !one.ok),
    ...omissions(block).slice(0, 10),
    ...size.skipped.slice(0, 10).map((detail) => err("log-broken", detail)),
  ].map(told);
  const files = IDENTITY_FILES.flatMap((name) => {
    const text = parts.store.current(name);
    if (!text.ok) return [];
    return [{ file: `${name}.md`, characters: characters(text.value), limit: LIMITS[name] }];
  });
  return {
    version: VERSION,
    started_unix_ms: parts.startedUnixMs,
    summary: `${size.rows} texts of ${size.logs} logs and ${size.notes} notes can be recalled`,
    problems,
    files,
    indexed_records: size.rows + size.notes,
    indexed_logs: size.logs,
  };
}
