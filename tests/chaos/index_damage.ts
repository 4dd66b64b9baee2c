// Changes a closed index byte by byte, opens it each time and asks it questions: whether the damage is
// noticed, and whether recall answers as it did before, from a new index where need be.
import { ok } from "node:assert";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../shared/clock/clock.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { sealIndex } from "../../roles/memoryd/index_build.ts";
import { openKeeper } from "../../roles/memoryd/index_keeper.ts";
import { renderNote } from "../../roles/memoryd/notes.ts";
import {
  assistantRecord,
  chatId,
  userRecord,
  writeBaseline,
  writeRecords,
} from "../doubles/session_logs.ts";

const QUESTIONS = [
  "launch",
  "tennis",
  "kettle kitchen",
  "sports",
  "東京",
  "september",
  "read_file",
];

/** Memory keeps the many writes from wearing a disk, where the system has such a folder. */
function makeHome(): string {
  const dir = ["/dev/shm", "/tmp"].find((path) => {
    try {
      return Deno.statSync(path).isDirectory;
    } catch {
      return false;
    }
  });
  const home = Deno.makeTempDirSync({ dir, prefix: "bxi" });
  for (const name of ["sessions", "memory", "index"]) Deno.mkdirSync(`${home}/${name}`);
  const label = { class: "private", untrusted: false } as const;
  const note = { kind: "note", timeUnixMs: 1_000, session: chatId(1), label, from: null } as const;
  const texts = ["the launch moved to Thursday", "東京 の 天気"];
  const notes = texts.map((text) => renderNote({ ...note, text }));
  Deno.writeTextFileSync(`${home}/memory/notes.md`, notes.join(""));
  writeBaseline(home, chatId(1));
  writeRecords(home, chatId(1), [
    userRecord("tennis with Ada"),
    assistantRecord("a kettle in the kitchen", [["read_file", '{"path":"/srv/launch.txt"}']], 1),
  ]);
  return home;
}

function open(home: string, logged: string[]) {
  return openKeeper({
    disk: denoDisk,
    clock: systemClock,
    home,
    maxClass: "private",
    log: (line) => void logged.push(line),
    onStep: () => {},
  });
}

/** What recall answers at once, and when what goes on in the background has ended. */
async function answers(home: string) {
  const logged: string[] = [];
  const index = open(home, logged);
  const all = async () => {
    const found: unknown[] = [];
    for (const question of QUESTIONS) found.push(await index.search(question, 10));
    return JSON.stringify(found);
  };
  const first = await all();
  await index.check();
  const text = await all();
  index.close();
  return { first, text, hasLogged: logged.length > 0 };
}

/** The same index in the smallest pages, so that every byte can be tried. */
function makeSmall(file: string): void {
  Deno.removeSync(`${file}.seal`);
  const db = new DatabaseSync(file);
  db.exec("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM");
  db.close();
  // Without a seal it would be built anew, in pages of the usual size.
  ok(sealIndex(denoDisk, file).ok);
}

export interface Damage {
  /** Bytes tried. */
  readonly bytes: number;
  /** Times that the damage was noticed by itself. */
  readonly noticed: number;
  /** Places whose damage made recall answer otherwise at first, before the index was built anew. */
  readonly passing: readonly number[];
  /** Places whose damage made recall answer otherwise for good. */
  readonly wrong: readonly number[];
}

/**
 * Changes every `step`th byte of an index that was closed in order (`sealed`), or by a crash
 * (`unsealed`), when it is built anew in any case.
 */
export async function damageCampaign(step: number, how: "sealed" | "unsealed"): Promise<Damage> {
  const home = makeHome();
  try {
    const file = `${home}/index/memory.sqlite3`;
    await answers(home);
    makeSmall(file);
    await answers(home);
    const { text: before } = await answers(home);
    ok(QUESTIONS.every((_, i) => JSON.parse(before)[i].value.hits.length > 0), before);
    const good = Deno.readFileSync(file);
    const seal = Deno.readFileSync(`${file}.seal`);
    const wrong: number[] = [];
    const passing: number[] = [];
    let bytes = 0;
    let noticed = 0;
    for (let at = 0; at < good.length; at += step) {
      const bad = good.slice();
      bad[at] = (bad[at] ?? 0) ^ 0xff;
      Deno.writeFileSync(file, bad);
      if (how === "sealed") Deno.writeFileSync(`${file}.seal`, seal);
      else Deno.removeSync(`${file}.seal`);
      const { first, text, hasLogged } = await answers(home);
      bytes++;
      if (hasLogged) noticed++;
      if (first !== before) passing.push(at);
      if (text !== before) wrong.push(at);
    }
    return { bytes, noticed, passing, wrong };
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
}
