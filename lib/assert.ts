/** Checks what must hold on both sides of a border. A failed assertion is a bug: it stops the request with a 500. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Assertion failed: ${message}`);
}
