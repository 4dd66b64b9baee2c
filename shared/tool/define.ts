// Short words for what a manifest says. What is left out is the least a tool can have: no path, no
// effect, no network.
import type { Manifest, Parameters, ToolLimits } from "./manifest.ts";

/** A text of at most `maxLength` characters. */
export const text = (
  description: string,
  maxLength: number,
  more: { readonly minLength?: number; readonly enum?: string[] } = {},
) => ({ type: "string", description, maxLength, ...more }) as const;

/** An absolute path of the owner's. */
export const path = (description: string) => text(description, 4_096);

/** A whole number, both bounds included. */
export const count = (description: string, minimum: number, maximum: number) =>
  ({ type: "integer", description, minimum, maximum }) as const;

/** A yes or no; no when left out. */
export const flag = (description: string) => ({ type: "boolean", description }) as const;

type Said = Pick<Manifest, "name" | "description"> & Partial<Omit<Manifest, "limits">> & {
  readonly properties: Parameters["properties"];
  readonly required: string[];
  readonly limits?: Partial<ToolLimits>;
};

export function manifestOf({ properties, required, limits, ...said }: Said): Manifest {
  return {
    parameters: { type: "object", properties, required, additionalProperties: false },
    paths: [],
    effect: "none",
    network: false,
    scratch: false,
    env: [],
    summarise: false,
    ...said,
    limits: { timeout_s: 20, output_bytes: 1_048_576, memory_mb: 128, pids: 64, ...limits },
  };
}
