// The configuration of inferproxy, `{home}/config/inferproxy.toml`.
import { z } from "zod";
import { count, HostPort } from "./fields.ts";

export const InferproxyConfig = z.strictObject({
  upstream: z.strictObject({
    address: HostPort.default("127.0.0.1:8080")
      .describe("The one model server, host:port; the only address this role may reach"),
  }).prefault({}),
  limits: z.strictObject({
    connections: count(1, 256).default(16).describe("Connections carried at once"),
  }).prefault({}),
});
export type InferproxyConfig = z.output<typeof InferproxyConfig>;
