/** JSON of the platform without loss: a number that a double would write differently stays as it was written. */
import { ExactNumber } from '../../lib/json/exact-number.ts';

/** The value of a JSON text. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? new ExactNumber(context.source)
      : value;
  return JSON.parse(text, reviver);
}
