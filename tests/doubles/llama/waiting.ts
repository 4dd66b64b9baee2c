// Waiting that ends early: a sleep or a foreign promise that an abort signal cuts short.

/** Resolves after `ms` or when `signal` aborts; its timer never outlives it. */
export function rest(ms: number, signal: AbortSignal): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

/** Resolves when `promise` settles or `signal` aborts; never rejects. */
export function settled(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done);
    promise.then(done, done);
  });
}

/** The promise's value, or null when `signal` aborts first; a rejection before that is thrown. */
export async function valueUnless<T>(
  value: T | Promise<T>,
  signal: AbortSignal,
): Promise<T | null> {
  const promise = Promise.resolve(value);
  await settled(promise, signal);
  return signal.aborted ? null : await promise;
}
