// The configuration of egressd, `{home}/config/egressd.toml`, and the addresses it never dials.
import { z } from "zod";
import { AbsolutePath, count } from "./fields.ts";

/**
 * Loopback, private, link-local, tailnet, documentation, multicast and reserved addresses. IPv6 ranges
 * cannot be denied by a flag: egressd dials from an IPv4 address only.
 */
export const DENIED_RANGES = [
  "127.0.0.0/8",
  "0.0.0.0/8",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "[::]",
  "[::1]",
] as const;

/** One IPv4 address or range, for the host's own public addresses. */
const Range = z.string().regex(
  /^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(?:\/(?:[12]?[0-9]|3[0-2]))?$/,
  "write an IPv4 address or range, for example 203.0.113.7 or 203.0.113.0/24",
);

export const EgressdConfig = z.strictObject({
  tls: z.strictObject({
    ca_file: AbsolutePath.optional()
      .describe("PEM file of certificate authorities trusted beside the usual ones"),
  }).prefault({}),
  deny: z.strictObject({
    open: z.array(z.enum(DENIED_RANGES)).max(DENIED_RANGES.length).default([])
      .describe("Denied ranges that are opened all the same, exactly as the list names them"),
    more: z.array(Range).max(64).default([]).describe("Further addresses never dialled"),
  }).prefault({}),
  limits: z.strictObject({
    request_s: count(1, 600).default(30).describe("Seconds until one request must have ended"),
    request_bytes: count(0, 16_777_216).default(1_048_576).describe("Bytes of one request's body"),
    response_bytes: count(1, 1_073_741_824).default(52_428_800)
      .describe("Bytes of all answers of one call"),
    requests: count(1, 10_000).default(200).describe("Requests of one call"),
    concurrent: count(1, 64).default(8).describe("Requests of one call at once"),
  }).prefault({}),
});
export type EgressdConfig = z.output<typeof EgressdConfig>;
