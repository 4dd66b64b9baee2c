// The configuration of brokerd, `{home}/config/brokerd.toml`.
import { z } from "zod";
import { AbsolutePath, count, Secrets } from "./fields.ts";

const Runtime = z.strictObject({
  podman: AbsolutePath.default("/usr/bin/podman").describe("The only program this role may start"),
  image: AbsolutePath.optional()
    .describe("Folder of the built tool image; absent means build/image of the source folder"),
  images: z.array(AbsolutePath).max(8).default([])
    .describe("Folders of further built images, which grants name by digest"),
  store: AbsolutePath.optional()
    .describe("Podman's image store; absent means {home}/podman; never moved once used"),
  run: AbsolutePath.optional()
    .describe(
      "Podman's run folder, at most 39 bytes; absent means one made for the store; never moved",
    ),
  concurrent: count(1, 32).default(2).describe("Containers running at once; more calls wait"),
});

const Approvals = z.strictObject({
  expires_s: count(10, 604_800).default(900).describe(
    "Seconds until an unanswered question expires",
  ),
  per_hour: count(1, 1_000).default(30).describe("Questions to the owner in one hour"),
});

const Limits = z.strictObject({
  timeout_s: count(1, 3_600).default(60).describe("Seconds a call may run"),
  output_bytes: count(1_024, 67_108_864).default(1_048_576).describe(
    "Bytes of output kept of a call",
  ),
  memory_mb: count(16, 65_536).default(256).describe("Memory of a call"),
  pids: count(1, 4_096).default(64).describe("Processes and threads of a call"),
  calls_per_turn: count(1, 10_000).default(40).describe("Calls of one tool in one turn"),
  calls_per_day: count(1, 1_000_000).default(1_000).describe("Calls of one tool in one day"),
});

export const BrokerdConfig = z.strictObject({
  paths: z.strictObject({
    roots: z.array(AbsolutePath).max(64).default([])
      .describe(
        "The owner's folders that grants may name; nothing else of the owner's is readable",
      ),
  }).prefault({}),
  runtime: Runtime.prefault({}),
  approvals: Approvals.prefault({}),
  memory: z.strictObject({
    identity_writes: z.enum(["auto", "staged", "ask"]).default("auto")
      .describe(
        "Whether edits of the identity files wait for bxctl memory review (staged) or ask the owner " +
          "first (ask); notes never wait",
      ),
  }).prefault({}),
  limits: Limits.prefault({}).describe("What a call gets when its grant does not say otherwise"),
  secrets: Secrets,
});
export type BrokerdConfig = z.output<typeof BrokerdConfig>;
