// The policy of the built-in tools: constants that no file can change. What protects memory is that
// memoryd decides by the session's label, which brokerd sends with every call.
import { SESSION_START } from "../../shared/labels/label.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { type AllowGrant, type GrantFile } from "./grant_schema.ts";
import type { BuiltInName } from "./builtin_tools.ts";

type Policy = Exclude<GrantFile, { mode: "deny" }>;

/** Trusted by itself: the label of what comes back is the one that memoryd gives it. */
function policy(tool: BuiltInName, more: Partial<Policy>): Policy {
  return {
    tool,
    mode: "auto",
    paths: [],
    hosts: [],
    write: false,
    max_taint: "secret",
    when_untrusted: "same",
    result_class: "public",
    untrusted: false,
    approver: "any",
    limits: { calls_per_turn: 10_000, calls_per_day: 1_000_000 },
    ...more,
  };
}

/** The built-in grants under the owner's setting of `identity_writes`. */
export function builtInGrants(identityWrites: "auto" | "staged" | "ask"): readonly AllowGrant[] {
  const memory = identityWrites !== "ask" ? { memory: policy("memory", {}) } : {
    "memory-ask": policy("memory", { mode: "ask" }),
    "memory-note": policy("memory", { patterns: { action: ["note"] } }),
    // In such a session memoryd makes a note of an addition and refuses every other edit.
    "memory-above": { ...policy("memory", {}), above: SESSION_START },
  };
  const constants = {
    clock: policy("clock", {}),
    find_tool: policy("find_tool", {}),
    ...memory,
    read_result: policy("read_result", {}),
    recall: policy("recall", {}),
  };
  return Object.entries(constants).map(([name, file]) => ({
    ...file,
    name: `built-in ${name}`,
    sha256: sha256Hex(encodeCanonical(file)),
    real_paths: [],
  }));
}
