// What is wrong with the memory files, looked at one by one for the owner's doctor. Nothing is changed
// but a probe that is written and removed to see that there is room.
import { attempt, removeFile, replaceFile } from "../../shared/disk/durable.ts";
import { type Err, err, type Result } from "../../shared/results/result.ts";
import type { Block } from "./block.ts";
import { IDENTITY_FILES } from "./entries.ts";
import { allNotes, readIdentity } from "./identity_files.ts";
import type { StorePlace } from "./journal.ts";
import type { MemoryStore } from "./memory_store.ts";

const PROBE_BYTES = 65_536;

/** What is wrong, each with what to look at; empty when nothing is. */
export function checkFiles(
  { disk, folder }: StorePlace,
  store: Pick<MemoryStore, "block" | "history" | "staged" | "purged" | "recalls">,
): Err[] {
  return [
    ...failures(IDENTITY_FILES.map((file) => readIdentity(disk, folder, file))),
    ...omissions(store.block(IDENTITY_FILES)),
    ...failures([store.history(), store.staged(), store.purged(), store.recalls(0)]),
    ...notesProblems({ disk, folder }),
    ...folderProblems({ disk, folder }),
  ];
}

/** What a block leaves out. */
export function omissions(block: Result<Block>): Err[] {
  const omitted = block.ok ? block.value.omitted : [];
  return omitted.map(({ file, reason }) => err("memory-entry-omitted", `${file}: ${reason}`));
}

function failures(results: readonly Result<unknown>[]): Err[] {
  return results.filter((one) => !one.ok);
}

function notesProblems({ disk, folder }: Pick<StorePlace, "disk" | "folder">): Err[] {
  const notes = allNotes(disk, folder);
  if (!notes.ok) return [notes];
  const { unlabelled } = notes.value;
  if (unlabelled === 0) return [];
  const detail = `notes.md has ${unlabelled} parts without a valid head; they are never shown`;
  return [err("record-invalid", detail)];
}

function folderProblems({ disk, folder }: Pick<StorePlace, "disk" | "folder">): Err[] {
  const facts = attempt(() => disk.stat(folder));
  const isOpen = facts.ok && (facts.value.mode & 0o077) !== 0;
  const mode = facts.ok ? facts.value.mode.toString(8) : "";
  const probe = `${folder}/probe`;
  const written = replaceFile(disk, probe, new Uint8Array(PROBE_BYTES));
  const removed = removeFile(disk, probe);
  return [
    ...(isOpen ? [err("home-unsafe", `${folder} has mode ${mode}: others can look in`)] : []),
    ...failures([facts, written, removed]),
  ];
}
