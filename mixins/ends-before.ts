/** Waits for work, but no longer than until `until` on the clock of `performance.now()`. False when the work goes on. */
export async function endsBefore(work: PromiseLike<unknown>, until: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, Math.max(0, until - performance.now()), false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
