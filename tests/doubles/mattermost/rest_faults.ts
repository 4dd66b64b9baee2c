// Faults that wait for a request: each catches the requests it names, in the order they were set.
import type { RestAction, RestFault } from "./knobs.ts";

export interface FaultQueue {
  add(fault: RestFault): void;
  take(method: string, path: string): RestAction | null;
  clear(): void;
  /** Faults not used up yet. */
  count(): number;
}

export function createFaultQueue(): FaultQueue {
  let waiting: { fault: RestFault; skip: number; times: number }[] = [];
  return {
    add: (fault) => {
      waiting.push({ fault, skip: fault.skip ?? 0, times: fault.times ?? 1 });
    },
    take: (method, path) => {
      for (const one of waiting) {
        const { fault } = one;
        if (fault.method !== undefined && fault.method !== method) continue;
        if (fault.path !== undefined && !new RegExp(fault.path).test(path)) continue;
        if (one.skip > 0) {
          one.skip--;
          continue;
        }
        one.times--;
        waiting = waiting.filter((other) => other.times > 0);
        return fault.action;
      }
      return null;
    },
    clear: () => {
      waiting = [];
    },
    count: () => waiting.length,
  };
}
