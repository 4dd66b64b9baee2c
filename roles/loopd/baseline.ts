// The beginning of an epoch, fixed for as long as it lasts: system text and memory block, examples,
// tools, sampling, label. Nothing volatile may enter it.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import { SESSION_START } from "../../shared/labels/label.ts";
import type { Baseline } from "../../shared/session_log/records.ts";
import { toolsArray } from "./core_tools.ts";
import type { Ports } from "./ports.ts";
import { SYSTEM_TEXT } from "./system.ts";

/** Tokens a baseline may have by the server's own count. */
export const BASELINE_BUDGET = 3_000;

/** What every session of this process begins with. */
export interface BaselineParts {
  readonly ports: Ports;
  readonly config: LoopdConfig;
  readonly examples: readonly { readonly [key: string]: unknown }[];
}

/** The system message: the fixed text, an empty line, the memory block. */
export function systemMessage(memoryBlock: string): string {
  return memoryBlock === "" ? SYSTEM_TEXT : `${SYSTEM_TEXT}\n\n${memoryBlock}`;
}

/** The beginning of a session that starts now. */
export function newBaseline(
  { ports, config, examples }: BaselineParts,
  session: SessionId,
  memoryBlock: string,
): Baseline {
  const { temperature, top_p, top_k } = config.inference.sampling;
  return {
    v: 1,
    session,
    epoch: 0,
    created_unix_ms: ports.clock.nowUnixMs(),
    label: SESSION_START,
    system: systemMessage(memoryBlock),
    examples: examples.map((message) => ({ ...message })),
    tools: toolsArray(),
    sampling: { temperature, top_p, top_k },
  };
}
