// Everything a test may turn on a running double: what kind of server it is and how it misbehaves.
// Knobs stay until they are turned back; faults of single requests (`RestFault`) are used up.

export type Profile = "v10.11" | "v11" | "v12";

export interface Knobs {
  readonly profile: Profile;
  readonly version: string;
  /** Code points of one message. */
  readonly maxPostSize: number;
  /** Seconds after which a post cannot be edited; -1 = never. */
  readonly postEditTimeLimitS: number;
  readonly linkPreviews: boolean;
  readonly typingIntervalMs: number;
  readonly maxFileSize: number;
  readonly filesAllowed: boolean;
  readonly reactionLimit: number;
  /** null = the server does not limit. */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | null;
  /** Busy mode: typing answers 503. */
  readonly isBusy: boolean;
  /** Posts into direct channels are refused by policy (v11 and later). */
  readonly dmRestricted: boolean;

  /** Milliseconds before each REST answer. */
  readonly latencyMs: number;
  /** Milliseconds between the reservation of a pending id and the commit of its post. */
  readonly createDelayMs: number;
  /** Milliseconds by which a 201 follows the event of the same post. */
  readonly echoLeadMs: number;
  /** Refuses every REST request but ping with 401, as after an expiry nobody announced. */
  readonly sessionsInvalid: boolean;

  readonly helloDelayMs: number;
  readonly helloWithheld: boolean;
  /** The server closes at once after its 101, as an invalid resume does. */
  readonly closesAfterUpgrade: boolean;
  /** Answers the upgrade with 502 instead. */
  readonly upgradeRefused: boolean;
  readonly pongWithheld: boolean;
  readonly pingReplyWithheld: boolean;
  /** Every event is sent twice, with two numbers. */
  readonly eventsTwice: boolean;
  /** Unknown fields in every envelope and post. */
  readonly unknownFields: boolean;

  /** `GET reactions` answers null when there are none. */
  readonly reactionsNull: boolean;
  /** File ids of new posts are silently dropped. */
  readonly filesDropped: boolean;
  /** `since` finds nothing, whatever there is. */
  readonly sinceEmpty: boolean;
  /** A new post of the owner's arrives between two pages of a listing. */
  readonly pagesDrift: boolean;
  /**
   * strict: each post has a later millisecond; same: all share one; backwards: each is earlier; wall:
   * each has the present time, also when that was set back.
   */
  readonly clock: "strict" | "same" | "backwards" | "wall";
  /** Milliseconds by which the server's clock is ahead of this machine's. */
  readonly aheadMs: number;
}

export const AT_REST: Knobs = {
  profile: "v11",
  version: "11.11.1",
  maxPostSize: 16_383,
  postEditTimeLimitS: -1,
  linkPreviews: true,
  typingIntervalMs: 5000,
  maxFileSize: 100 * 1024 * 1024,
  filesAllowed: true,
  reactionLimit: 50,
  rateLimit: null,
  isBusy: false,
  dmRestricted: false,
  latencyMs: 0,
  createDelayMs: 0,
  echoLeadMs: 0,
  sessionsInvalid: false,
  helloDelayMs: 0,
  helloWithheld: false,
  closesAfterUpgrade: false,
  upgradeRefused: false,
  pongWithheld: false,
  pingReplyWithheld: false,
  eventsTwice: false,
  unknownFields: false,
  reactionsNull: false,
  filesDropped: false,
  sinceEmpty: false,
  pagesDrift: false,
  clock: "strict",
  aheadMs: 0,
};

/** What happens to a request that a fault catches; `isCommitted` = the request takes effect first. */
export type RestAction =
  | { readonly kind: "refuse"; readonly status: number; readonly id: string }
  | { readonly kind: "limited"; readonly retryAfterS: number | null; readonly resetS: number }
  | { readonly kind: "proxy"; readonly status: number; readonly isCommitted: boolean }
  | { readonly kind: "empty"; readonly status: number; readonly isCommitted: boolean }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "truncated" }
  | { readonly kind: "wrong-type" }
  | { readonly kind: "lost"; readonly isCommitted: boolean };

export interface RestFault {
  /** Absent = every method. */
  readonly method?: string;
  /** A regular expression over the path after `/api/v4`; absent = every path. */
  readonly path?: string;
  /** Requests that pass before the first is caught (0). */
  readonly skip?: number;
  /** Requests caught before the fault is used up (1). */
  readonly times?: number;
  readonly action: RestAction;
}

export type SocketDrop =
  | "fin"
  | "rst"
  | "empty-close"
  | "half-open"
  | "deaf"
  | "oversize-close";
