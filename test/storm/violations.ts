/** Findings of a storm: each broken promise, with the view of both sides. */

export interface Violation {
  /** Which promise. */
  readonly oracle: string;
  readonly what: string;
  /** The client's view. */
  readonly ledger?: unknown;
  /** The server's view. */
  readonly server?: unknown;
}

/** As many of one promise are printed when they are found. */
const SHOWN_MAX = 3;

export class Violations {
  readonly all: Violation[] = [];
  readonly #say: (text: string) => void;

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  add(violation: Violation): void {
    this.all.push(violation);
    if (this.all.filter(({ oracle }) => oracle === violation.oracle).length <= SHOWN_MAX)
      this.#say(`VIOLATION ${explained(violation)}`);
  }

  /** How many there are of each promise. */
  counts(): string {
    const groups = Map.groupBy(this.all, ({ oracle }) => oracle);
    return [...groups].map(([oracle, { length }]) => `${length} of "${oracle}"`).join(', ');
  }

  /** Adds one for each pair that differs. */
  equal(oracle: string, what: string, server: unknown, ledger: unknown): void {
    if (JSON.stringify(server) !== JSON.stringify(ledger)) this.add({ oracle, what, ledger, server });
  }
}

/** For people. */
export function explained({ oracle, what, ledger, server }: Violation): string {
  const side = (name: string, value: unknown): string =>
    value === undefined
      ? ''
      : `\n    ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`.slice(0, 2_000);
  return `${oracle}: ${what}${side('the ledger says', ledger)}${side('the server says', server)}`;
}
