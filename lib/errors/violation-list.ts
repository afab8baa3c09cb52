/**
 * The violations of one request, up to the number that an answer shows. A body can be wrong in a hundred thousand
 * places: beyond that number they are no longer made, only known to exist.
 */
import type { ViolationCode } from './catalogue.ts';
import type { Violation } from './platform-error.ts';

/** Violations in one answer, which must not be larger than the request. */
export const VIOLATIONS_MAX = 100;

export class ViolationList<Code extends ViolationCode = ViolationCode> {
  readonly #found: Violation<Code>[] = [];
  #more = false;

  /** True when no further violation is kept. */
  get full(): boolean {
    return this.#found.length >= VIOLATIONS_MAX;
  }

  get list(): readonly Violation<Code>[] {
    return this.#found;
  }

  /** `3`, or `more than 100`. */
  get count(): string {
    return this.#more ? `more than ${VIOLATIONS_MAX}` : String(this.#found.length);
  }

  /** `make` is not called when the list is full. */
  add(make: () => Violation<Code>): void {
    if (this.full) this.#more = true;
    else this.#found.push(make());
  }
}
