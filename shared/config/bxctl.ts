// The configuration of bxctl, `{home}/config/bxctl.toml`. It has no keys yet; any key is refused.
import { z } from "zod";

export const BxctlConfig = z.strictObject({});
export type BxctlConfig = z.output<typeof BxctlConfig>;
