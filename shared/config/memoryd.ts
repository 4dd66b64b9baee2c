// The configuration of memoryd, `{home}/config/memoryd.toml`.
import { z } from "zod";
import { DataClass } from "../labels/label.ts";
import { AbsolutePath, Secrets } from "./fields.ts";

export const MemorydConfig = z.strictObject({
  memory: z.strictObject({
    soul_starter: AbsolutePath.optional()
      .describe("Text of a first soul.md; absent means memory/soul.md of the source folder"),
  }).prefault({}),
  index: z.strictObject({
    max_class: DataClass.default("private")
      .describe("The highest class of text that enters the recall index"),
  }).prefault({}),
  secrets: Secrets,
});
export type MemorydConfig = z.output<typeof MemorydConfig>;
