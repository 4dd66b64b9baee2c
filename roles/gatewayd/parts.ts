// What the parts of the channel are made of. Each part says which of these it gets, and gets no other.
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { Log } from "../../shared/log/log.ts";
import type { Secret } from "../../shared/secrets/secret_store.ts";
import type { Health } from "./health.ts";
import type { Peers } from "./peers.ts";
import type { Rest } from "./rest.ts";
import type { Sender } from "./sender.ts";
import type { Store } from "./store.ts";
import type { Timers } from "./timers.ts";
import type { Place } from "./trust.ts";

export interface Parts {
  /** The server's address, without a path. */
  readonly base: string;
  readonly token: Secret;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly store: Store;
  readonly peers: Peers;
  readonly timers: Timers;
  readonly health: Health;
  readonly rest: Rest;
  readonly sender: Sender;
  readonly place: Place;
  /** The direct channel with the owner. */
  readonly direct: string;
  /** Code points that one post may have. */
  readonly limit: () => number;
  /** Aborts when the channel is to end. */
  readonly signal: AbortSignal;
}
