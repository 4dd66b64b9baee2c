// The configuration of egressd, `{home}/config/egressd.toml`. It has no keys yet; any key is refused.
import { z } from "zod";

export const EgressdConfig = z.strictObject({});
export type EgressdConfig = z.output<typeof EgressdConfig>;
