// The configuration of loopd, `{home}/config/loopd.toml`.
import { z } from "zod";
import { AbsolutePath, count, HostPort } from "./fields.ts";

const Sampling = z.strictObject({
  temperature: z.number().min(0).max(2).default(0.6).describe("Sampling temperature"),
  top_p: z.number().gt(0).max(1).default(0.95).describe("Nucleus sampling"),
  top_k: count(0, 1_000).default(20).describe("Candidates kept; 0 keeps all"),
});

const Expected = z.strictObject({
  build: z.string().min(1).max(128).optional().describe("The server's build_info"),
  template_sha256: z.string().regex(/^[0-9a-f]{64}$/).optional()
    .describe("SHA-256 of the server's chat template"),
  n_ctx: count(1, 16_777_216).optional().describe("Tokens of context in one slot"),
  slots: count(1, 256).optional().describe("Number of slots"),
});

const Slots = z.strictObject({
  main: count(0, 255).default(0).describe("Slot of the owner's conversations"),
  background: count(0, 255).default(1).describe("Slot of jobs and runs"),
});

const Inference = z.strictObject({
  model: z.string().min(1).max(256).default("default").describe(
    "The model name sent to the server",
  ),
  upstream: HostPort.optional()
    .describe("Copy of inferproxy's address, shown to the owner; loopd itself reaches no host"),
  slots: Slots.prefault({}),
  first_byte_s: count(1, 86_400).default(900)
    .describe("Seconds to wait for the first byte; queueing and loading send none"),
  silence_s: count(1, 3_600).default(60).describe("Seconds without any byte that end a request"),
  thinking_tokens: count(1, 1_000_000).default(8_192).describe("Thinking tokens in one turn"),
  tool_calls: count(1, 1_000).default(40).describe("Tool calls in one turn"),
  examples: AbsolutePath.optional()
    .describe("File of ready-made exchanges put in front of every new session; absent means none"),
  self_test: z.enum(["boot", "first-turn"]).default("boot")
    .describe("When the model server is tested: at start, or with the first turn"),
  sampling: Sampling.prefault({}),
  expected: Expected.prefault({}),
});

export const LoopdConfig = z.strictObject({
  inference: Inference.prefault({}),
  tools: z.strictObject({
    result_bytes: count(1_024, 262_144).default(16_384)
      .describe("Bytes of a tool result that enter the conversation"),
  }).prefault({}),
  sessions: z.strictObject({
    queued_turns: count(1, 10_000).default(64).describe("Turns that may wait for a slot"),
  }).prefault({}),
});
export type LoopdConfig = z.output<typeof LoopdConfig>;
