// Why a call was not done, as codes the owner and the model see. The first block is in the order of
// evaluation: a later code is a nearer miss.

export const REASONS = {
  no_grant: "No grant of the owner allows this tool.",
  expired: "The grant for this tool has expired.",
  path_outside: "The path is outside what the owner's grants cover.",
  path_read_only: "The owner's grant for this path is for reading only.",
  host_not_granted: "The address is not among those that the owner's grants name.",
  pattern_mismatch: "An argument is not one that the owner's grants allow.",
  taint_exceeds: "This session has seen data of a higher class than the grant allows.",
  untrusted_session:
    "This session has read untrusted content, and the grant excludes such sessions.",
  denied_by_grant: "A grant of the owner denies this call.",
  limit_reached: "This tool has been called as often as its grant allows for now.",
  stopped: "The owner has stopped all tool calls. Nothing runs until the owner resumes.",
  grants_invalid:
    "A grant file of the owner has a problem, so this tool is denied until it is fixed.",
  unknown_tool: "There is no tool of this name. Use find_tool to look for one.",
  unknown_session: "This session was never opened, so it may call nothing.",
  arguments_invalid: "The arguments do not fit the tool's parameters.",
  denied_by_owner: "The owner was asked and said no.",
  approval_expired: "The owner was asked and did not answer in time.",
  withdrawn: "The call was withdrawn before it started.",
  throttled: "This session has asked the owner too often within an hour; wait before asking again.",
  outcome_unknown:
    "This call was started, but a crash came before its end was recorded. It may or may not have happened; look before doing it again.",
} as const;

export type Reason = keyof typeof REASONS;
