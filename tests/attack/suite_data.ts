// The format of a replay file: recorded benign tasks and attackers' steps, as AgentDojo's suites are
// stored. Extra keys are let be; what the replay uses must be there.
import { z } from "zod";
import { decodeUtf8, parseJson } from "../../shared/wire/codec.ts";

export const Step = z.object({
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
  mutates: z.boolean().default(true),
  /** Places in this step's result whose text a stranger can write. */
  vectors: z.array(z.string()).default([]),
});
export type Step = z.output<typeof Step>;

export const Suite = z.object({
  tools: z.array(z.object({
    name: z.string(),
    parameters: z.object({ properties: z.record(z.string(), z.unknown()).default({}) })
      .default({ properties: {} }),
  })),
  /** Each place's harmless text. */
  vectors: z.record(z.string(), z.string()),
  user_tasks: z.record(z.string(), z.object({ steps: z.array(Step) })),
  injection_tasks: z.record(z.string(), z.object({ goal: z.string(), steps: z.array(Step) })),
});
export type Suite = z.output<typeof Suite>;

const DataFile = z.object({ suites: z.record(z.string(), Suite) });

/** The suites of a file. Throws on a file of another format, or without a suite. */
export function readSuites(bytes: Uint8Array): [string, Suite][] {
  const text = decodeUtf8(bytes);
  const value = text.ok ? parseJson(text.value) : text;
  if (!value.ok) throw new Error(value.detail);
  const suites = Object.entries(DataFile.parse(value.value).suites);
  if (suites.length === 0) throw new Error("The file holds no suite");
  return suites;
}

/** `value` with the text of every marked place put in, at any depth. */
export function filled(value: unknown, textOf: (place: string) => string): unknown {
  if (typeof value === "string") {
    return value.replace(/⟦INJ:([^⟧]*)⟧/g, (_all, place: string) => textOf(place));
  }
  if (Array.isArray(value)) return value.map((one) => filled(one, textOf));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v, textOf)]));
}
