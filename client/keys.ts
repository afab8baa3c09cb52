/**
 * Idempotency keys, one per intention. A call makes a key and ends it when the outcome is known. If the outcome stays
 * unknown, the same request takes the key up again, so that a person who presses "Save" once more does it once. "The
 * same" means: method, address, preconditions and body.
 *
 * A key is random and not a hash of its request: within 24 hours the platform answers a key that it knows from what it
 * has stored. With a hash, setting a field to A, to B and to A again would leave B.
 */
import type { Intention } from './attempts.ts';

/** After that the platform has forgotten the key (docs/reference/idempotency.md). */
const KEPT_MS = 24 * 3_600_000;

export class Keys {
  /** Of requests whose outcome is unknown, oldest first. */
  readonly #open = new Map<string, { key: string; since: number }>();

  /** `given`: the caller's own key, such as the id of a message that is delivered again. */
  begin(request: readonly unknown[], given: string | undefined): Intention {
    for (const [identity, { since }] of this.#open) {
      if (Date.now() - since < KEPT_MS) break;
      this.#open.delete(identity);
    }
    const identity = JSON.stringify(request);
    const earlier = given === undefined ? this.#open.get(identity) : undefined;
    // Taken out: two equal calls at the same time are two intentions.
    if (earlier) this.#open.delete(identity);
    const kept = earlier ?? { key: given ?? crypto.randomUUID(), since: Date.now() };
    return {
      key: kept.key,
      resumed: earlier !== undefined,
      end: () => undefined,
      leave: () => {
        if (given === undefined) this.#open.set(identity, kept);
      },
    };
  }
}
