// The value every fallible boundary returns. Failures carry a closed code and one human detail;
// nobody matches on the detail. Exceptions are left for broken invariants.
import type { ErrorCode } from "./codes.ts";

export type Ok<T> = { readonly ok: true; readonly value: T };
export type Err<C extends string = ErrorCode> = {
  readonly ok: false;
  readonly code: C;
  readonly detail: string;
};
export type Result<T, C extends string = ErrorCode> = Ok<T> | Err<C>;

/** A success that carries `value`. */
export function ok<T>(value: T): Ok<T> {
  return { ok: true, value };
}

/** A failure: `code` is stable, `detail` is one sentence for a person, without a full stop. */
export function err<C extends string = ErrorCode>(code: C, detail: string): Err<C> {
  return { ok: false, code, detail };
}

/** Marks a branch the type checker has proved unreachable; reaching it is a broken invariant. */
export function assertNever(value: never): never {
  throw new TypeError(`Unreachable value: ${String(value)}`);
}

/** The message of anything thrown, for a detail or a log line. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
