declare global {
  interface JSON {
    /** ECMAScript 2026, not yet in the library of TypeScript. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A number of a JSON text that a double cannot hold exactly, kept as it was written. The strict parser creates it,
 * field types read `text`, and it is serialized as the same number.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.text);
  }
}

/** Characters of the longest number: twice the digits that any value may have, so that zeros and an exponent fit. */
export const NUMBER_MAX_CHARS = 400;

/** Digits without the zeros at their end. Counts from there: a pattern would begin anew at every zero in between. */
export function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end--;
  return digits.slice(0, end);
}
