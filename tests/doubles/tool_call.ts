// Plays one call to a tool's body on real folders, without its process.
import { seededRandom } from "../../shared/clock/random.ts";
import { denoFiles } from "../../shared/tool/deno_tool.ts";
import type { Files } from "../../shared/tool/files.ts";
import type { ToolBody, ToolOutcome } from "../../shared/tool/sdk.ts";

export interface PlayedCall {
  readonly outcome: ToolOutcome;
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** Runs `body` with `args`; `files` replaces parts of the real file port. */
export async function playTool(
  body: ToolBody,
  args: Readonly<Record<string, unknown>>,
  files: Partial<Files> = {},
): Promise<PlayedCall> {
  const pieces: number[] = [];
  const outcome = await body({
    args,
    secrets: {},
    files: { ...denoFiles, ...files },
    random: seededRandom(7),
    write: (piece) => {
      const bytes = typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
      for (const byte of bytes) pieces.push(byte);
      return Promise.resolve();
    },
  });
  const bytes = Uint8Array.from(pieces);
  return { outcome, bytes, text: new TextDecoder().decode(bytes) };
}

/** A fresh folder that `work` may fill; removed afterwards. */
export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = Deno.makeTempDirSync({ prefix: "bx-tool-" });
  try {
    await work(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}
