// Every fault the double can be told to show. A knob at rest changes nothing; `set` turns some of
// them for all requests, a script's turn for its own answer only.
import type { JsonObject } from "./json_value.ts";

export type PlainAnswer = {
  readonly status: number;
  readonly body: string;
  readonly contentType: string;
};

export type Knobs = {
  // Before the headers.
  readonly delayHeadersMs: number;
  /** Answered instead of a completion; other endpoints are not touched. */
  readonly httpAnswer: PlainAnswer | null;
  readonly doubleConnectionHeader: boolean;

  // Bytes.
  /**
   * Cuts every write after this many bytes (counted from its end when negative), with a pause
   * between the two. 0 = whole writes.
   */
  readonly splitAt: number;
  /** Cuts every write into pieces of this many bytes. 0 = whole writes. */
  readonly splitEvery: number;
  /** Holds everything after the headers back and sends it as one write. */
  readonly joinAll: boolean;

  // Events.
  readonly noRole: boolean;
  /** Sends this many progress events instead of one per batch. 0 = off. */
  readonly progressEvents: number;
  readonly pingBetweenEvents: boolean;
  /** A silence after so many deltas, without pings even when it is longer than their interval. */
  readonly pauseAfter: { readonly deltas: number; readonly ms: number } | null;
  readonly extraFields: JsonObject;
  readonly unknownEvent: boolean;
  readonly omitTimings: boolean;
  readonly omitUsage: boolean;
  readonly noFinish: boolean;
  readonly noDone: boolean;

  // Broken streams, each after so many deltas.
  readonly errorAfter: { readonly deltas: number; readonly message: string } | null;
  readonly endAfter: number | null;
  readonly resetAfter: number | null;
  readonly proxyErrorAfter: number | null;

  // Generation.
  readonly tokenMs: number;
  readonly batchMs: number;
  readonly duplicateToolIds: boolean;
  readonly interleaveCalls: boolean;
  /** Ends with `length` after so many fragments of tool arguments. */
  readonly cutArgumentsAfter: number | null;
  /** Calls of the script are not made, as if the model had only chattered. */
  readonly dropCalls: boolean;
  /** After a budget cut the rest of the thought and a literal end tag stand in `content`. */
  readonly leftoverThought: boolean;
  readonly reasoningEndIgnored: boolean;
  /** A token limit that beats the request's own. 0 = off. */
  readonly limitTokens: number;

  // Cache and slots.
  /** What the next prompts find: nothing, the last checkpoint, or a foreign entry this long. */
  readonly cache: "true" | "lost" | "checkpoint" | { readonly foreign: number };
  readonly ramCacheMiss: boolean;
  /** How long a slot stays busy after its client has gone. */
  readonly cancelMs: number;
  /** The slot stays busy for ever after its client has gone (until `freeSlots`). */
  readonly stuckSlot: boolean;

  // Loading (the one model, or every model of a router).
  readonly loadMs: number;
  readonly loadFails: boolean;
  readonly loadNeverEnds: boolean;
  readonly modelLimitReached: boolean;

  // What the server says of itself; null = the truth.
  readonly buildInfo: string | null;
  readonly totalSlots: number | null;
  readonly nCtx: number | null;
  readonly chatTemplate: string | null;
  readonly unknownStatus: string | null;
};

export const AT_REST: Knobs = {
  delayHeadersMs: 0,
  httpAnswer: null,
  doubleConnectionHeader: false,
  splitAt: 0,
  splitEvery: 0,
  joinAll: false,
  noRole: false,
  progressEvents: 0,
  pingBetweenEvents: false,
  pauseAfter: null,
  extraFields: {},
  unknownEvent: false,
  omitTimings: false,
  omitUsage: false,
  noFinish: false,
  noDone: false,
  errorAfter: null,
  endAfter: null,
  resetAfter: null,
  proxyErrorAfter: null,
  tokenMs: 0,
  batchMs: 0,
  duplicateToolIds: false,
  interleaveCalls: false,
  cutArgumentsAfter: null,
  dropCalls: false,
  leftoverThought: false,
  reasoningEndIgnored: false,
  limitTokens: 0,
  cache: "true",
  ramCacheMiss: false,
  cancelMs: 0,
  stuckSlot: false,
  loadMs: 0,
  loadFails: false,
  loadNeverEnds: false,
  modelLimitReached: false,
  buildInfo: null,
  totalSlots: null,
  nCtx: null,
  chatTemplate: null,
  unknownStatus: null,
};

export const FORMAT_ERROR =
  "The model produced output that does not match the expected peg-native format";
export const CONTEXT_ERROR = "Context size has been exceeded.";
