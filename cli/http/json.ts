/** JSON of the platform without loss: a number that a double cannot hold stays as it was written. */
import { ExactNumber } from '../../lib/json/exact-number.ts';

/** The value of a JSON text. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? exact(value, context.source)
      : value;
  return JSON.parse(text, reviver);
}

/** 1.50 and 1e3 are what a double says as well; only digits that it would lose are kept apart. */
function exact(value: number, source: string): unknown {
  const digits = source
    .replace(/[eE].*$/, '')
    .replace(/\D/g, '')
    .replace(/^0+/, '');
  return digits.length > 15 || !Number.isFinite(value) ? new ExactNumber(source) : value;
}
