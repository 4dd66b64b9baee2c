// The scratch folder of `try`: a home, some papers to read, and the mark that a try made it.
// What an earlier try left is removed, and nothing but that: a folder without the mark, a link, and a
// folder whose try still runs are refused.

const MARK = ".boxmaker-try";

export interface Scratch {
  readonly base: string;
  readonly home: string;
  readonly papers: string;
  readonly store: string;
  /** The mark, locked while this try lives. */
  readonly marker: Deno.FsFile;
}

/** Makes the scratch folder below `owner`, an absolute folder. Throws one sentence when it may not. */
export function makeScratch(owner: string): Scratch {
  // A model as small as the one of --model copies a path of plain words and stumbles over others.
  const base = `${owner}/trial`;
  removeEarlier(base);
  const papers = `${base}/papers`;
  Deno.mkdirSync(base, { mode: 0o700 });
  const marker = lockedMarker(base, { write: true, createNew: true });
  marker.writeSync(new TextEncoder().encode("Made by deno task try; removed by the next one.\n"));
  Deno.mkdirSync(papers, { mode: 0o700 });
  const write = (name: string, text: string) => Deno.writeTextFileSync(`${papers}/${name}`, text);
  write("plan.txt", "Launch plan\n\n1. Fill the tanks.\n2. Wait.\n3. Go.\n");
  write("key.txt", "The spare key hangs behind the blue door.\n");
  write("guests.txt", "Ada\nGrace\nKatherine\n");
  return { base, home: `${base}/home`, papers, store: `${owner}/.cache/boxmaker/podman`, marker };
}

function removeEarlier(base: string): void {
  const found = kindOf(base);
  if (found === "nothing") return;
  if (found !== "folder" || kindOf(`${base}/${MARK}`) === "nothing") {
    throw new Error(`Cannot use ${base} as no try has made it: move it away`);
  }
  const marker = lockedMarker(base, { read: true });
  Deno.removeSync(base, { recursive: true });
  marker.close();
}

function kindOf(path: string): "nothing" | "folder" | "other" {
  try {
    return Deno.lstatSync(path).isDirectory ? "folder" : "other";
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return "nothing";
    throw thrown;
  }
}

function lockedMarker(base: string, options: Deno.OpenOptions): Deno.FsFile {
  const marker = Deno.openSync(`${base}/${MARK}`, options);
  if (marker.tryLockSync(true)) return marker;
  marker.close();
  throw new Error(`Cannot use ${base} as another try still runs there: end it first`);
}
