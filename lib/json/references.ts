/**
 * References of a composite request to results of earlier parts: `@{acc.id}` in a text stands for a value of the part
 * `acc`. A text that is nothing else becomes that value, whatever its type. `@@{` is the text `@{`. All take time in
 * proportion to the text. Source: docs/reference/composite.md#references.
 */

import { ExactNumber } from './exact-number.ts';
import { isObject } from './objects.ts';

export interface Reference {
  /** The part. */
  readonly name: string;
  /** Names of members, and places in lists. */
  readonly path: readonly string[];
}

/** A text as what stands in it: plain texts and references. */
type Pieces = readonly (string | Reference)[];

const FORM = /^([A-Za-z]\w{0,39})((?:\.\w{1,80}){1,10})$/;
const CONTENT_MAX_CHARS = 900;

/** The pieces of a text; null: something that begins like a reference is none. */
export function piecesOf(text: string): Pieces | null {
  const pieces: (string | Reference)[] = [];
  let plain = '';
  let at = 0;
  for (let open = text.indexOf('@{'); open >= 0; open = text.indexOf('@{', at)) {
    if (open > at && text[open - 1] === '@') {
      plain += `${text.slice(at, open - 1)}@{`;
      at = open + 2;
      continue;
    }
    const close = text.slice(open, open + CONTENT_MAX_CHARS).indexOf('}');
    const found = close < 0 ? null : FORM.exec(text.slice(open + 2, open + close));
    if (!found) return null;
    plain += text.slice(at, open);
    if (plain !== '') pieces.push(plain);
    plain = '';
    pieces.push({ name: found[1] ?? '', path: (found[2] ?? '').slice(1).split('.') });
    at = open + close + 1;
  }
  plain += text.slice(at);
  if (plain !== '' || pieces.length === 0) pieces.push(plain);
  return pieces;
}

/** True for a text in which a reference stands, or something that begins like one. */
export const hasReference = (text: string): boolean => {
  if (!text.includes('@{')) return false;
  const pieces = piecesOf(text);
  return pieces === null || pieces.some((piece) => typeof piece !== 'string');
};

/** The text with what its references stand for: `whole` for a text that is nothing else, `within` in a longer one. */
export function filled(
  text: string,
  whole: (reference: Reference) => unknown,
  within: (reference: Reference) => string,
): unknown {
  const pieces = piecesOf(text) ?? [text];
  const [only] = pieces;
  if (pieces.length === 1 && typeof only === 'object') return whole(only);
  return pieces.map((piece) => (typeof piece === 'string' ? piece : within(piece))).join('');
}

/** Calls `visit` with each text among the values of a JSON value, and its pointer. */
export function eachText(value: unknown, pointer: string, visit: (text: string, pointer: string) => void): void {
  if (typeof value === 'string') visit(value, pointer);
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) eachText(item, `${pointer}/${index}`, visit);
  else if (isPlain(value))
    for (const [name, item] of Object.entries(value))
      eachText(item, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, visit);
}

/** The value with each text in it replaced. */
export function mapTexts(value: unknown, change: (text: string) => unknown): unknown {
  if (typeof value === 'string') return value.includes('@{') ? change(value) : value;
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapTexts(item, change)]));
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && !(value instanceof ExactNumber);

/** The value under the names; undefined: there is none. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (Array.isArray(at)) at = /^\d{1,4}$/.test(name) ? at[Number(name)] : undefined;
    else at = isPlain(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

/** A value within a text; null: only numbers, texts and booleans can stand there. */
export function textOf(value: unknown): string | null {
  if (value instanceof ExactNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
