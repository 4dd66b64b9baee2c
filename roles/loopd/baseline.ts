// The beginning of an epoch, fixed for as long as it lasts: system text and memory block, examples,
// tools, sampling, label. Nothing volatile may enter it.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import type { Baseline } from "../../shared/session_log/records.ts";
import { toolsArray } from "./core_tools.ts";
import { SYSTEM_TEXT } from "./system.ts";

/** Tokens a baseline may have by the server's own count. */
export const BASELINE_BUDGET = 3_000;

export interface BaselineParts {
  readonly session: SessionId;
  readonly epoch: number;
  readonly nowUnixMs: number;
  readonly label: Label;
  readonly memoryBlock: string;
  readonly examples: readonly { readonly [key: string]: unknown }[];
  readonly config: LoopdConfig;
}

/** The system message: the fixed text, an empty line, the memory block. */
export function systemMessage(memoryBlock: string): string {
  return memoryBlock === "" ? SYSTEM_TEXT : `${SYSTEM_TEXT}\n\n${memoryBlock}`;
}

export function makeBaseline(parts: BaselineParts): Baseline {
  const { temperature, top_p, top_k } = parts.config.inference.sampling;
  return {
    v: 1,
    session: parts.session,
    epoch: parts.epoch,
    created_unix_ms: parts.nowUnixMs,
    label: parts.label,
    system: systemMessage(parts.memoryBlock),
    examples: parts.examples.map((message) => ({ ...message })),
    tools: toolsArray(),
    sampling: { temperature, top_p, top_k },
  };
}
