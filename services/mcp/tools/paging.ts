/**
 * Answers of any size in pages of a bounded one. An answer is taken apart into entries (a file, a change, a member of a
 * package); a page has as many as fit, and a cursor to those that follow. A file that fits into no page comes in pieces.
 */
import { isObject } from '../../../lib/json/objects.ts';
import type { Position } from '../cursor.ts';

type Json = Record<string, unknown>;

/** Properties of a page besides its content. */
interface PageState {
  readonly truncated: boolean;
  /** The page has a piece of this file, from this character on. */
  readonly piece: { readonly path: string; readonly offset: number; readonly length: number } | null;
}

/** One entry, and how it is put into a page. */
interface Entry {
  readonly value: unknown;
  readonly put: (page: Json, value: unknown) => void;
  /** Path of a file, whose text can be cut. */
  readonly file?: string;
}

/** A page of `answer` that takes at most `maxBytes`, as JSON and as JSON within a text of JSON. */
export function pageOf(answer: Json, { entry, offset }: Position, maxBytes: number): [Json, PageState, Position] {
  const { page, entries } = takeApart(answer);
  let room = maxBytes - costOf(page);
  let piece: PageState['piece'] = null;
  let at = entry;
  let from = offset;
  for (; at < entries.length; at++) {
    const { value, put, file } = entries[at]!;
    const rest = file === undefined || typeof value !== 'string' || from === 0 ? value : value.slice(from);
    const cost = costOf(file === undefined ? rest : [file, rest]);
    const isFirst = at === entry;
    if (cost <= room) {
      put(page, rest);
      if (from > 0 && file !== undefined) piece = { path: file, offset: from, length: lengthOf(value) };
      from = 0;
      room -= cost;
      continue;
    }
    if (!isFirst) break;
    if (file === undefined || typeof rest !== 'string') {
      // One change that is too long for a page: it is named, and no page can have it whole.
      put(page, outlineOf(rest));
      at++;
      break;
    }
    const text = fitting(rest, room - costOf(file));
    put(page, text);
    piece = { path: file, offset: from, length: lengthOf(value) };
    from += text.length;
    break;
  }
  const truncated = at < entries.length;
  return [page, { truncated, piece }, { entry: at, offset: from }];
}

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0);

/** Lists become entries; what is left is on every page. */
function takeApart(answer: Json): { page: Json; entries: Entry[] } {
  const page: Json = {};
  const entries: Entry[] = [];
  for (const [name, value] of Object.entries(answer)) {
    if (Array.isArray(value)) {
      page[name] = [];
      for (const item of value) entries.push({ value: item, put: (to, one) => listOf(to, name).push(one) });
    } else if (name === 'files' && isObject(value)) {
      page[name] = {};
      for (const [path, text] of Object.entries(value))
        entries.push({ value: text, file: path, put: (to, one) => (objectOf(to, name)[path] = one) });
    } else if (name === 'package' && isObject(value) && Array.isArray(value['types'])) {
      page[name] = { ...value, types: [] };
      // Not spread: a package has more members than a call takes arguments.
      for (const member of membersOf(value['types'])) entries.push(member);
    } else page[name] = value;
  }
  return { page, entries };
}

function membersOf(types: readonly unknown[]): Entry[] {
  return types.filter(isObject).flatMap(({ name, members }) =>
    (Array.isArray(members) ? members : []).map(
      (member): Entry => ({
        value: member,
        put: (to, one) => {
          const listed = listOf(objectOf(to, 'package'), 'types').filter(isObject);
          const last = listed.at(-1);
          if (last && last['name'] === name) listOf(last, 'members').push(one);
          else listOf(objectOf(to, 'package'), 'types').push({ name, members: [one] });
        },
      }),
    ),
  );
}

function listOf(holder: Json, name: string): unknown[] {
  const list = holder[name];
  if (!Array.isArray(list)) throw new Error(`${name} is no list.`);
  return list;
}

function objectOf(holder: Json, name: string): Json {
  const object = holder[name];
  if (!isObject(object)) throw new Error(`${name} is no object.`);
  return object;
}

/** Bytes of a value in an answer: once as JSON, and once more as JSON in a text. */
export function costOf(value: unknown): number {
  const json = JSON.stringify(value) ?? 'null';
  return Buffer.byteLength(json) + Buffer.byteLength(JSON.stringify(json)) + 2;
}

/** The longest beginning of a text that costs no more than that, and ends between characters. */
function fitting(text: string, room: number): string {
  let low = 1;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (costOf(text.slice(0, middle)) <= room) low = middle;
    else high = middle - 1;
  }
  const last = text.charCodeAt(low - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff && low > 1;
  return text.slice(0, isHalf ? low - 1 : low);
}

const OUTLINED_CHARS = 500;

/** The same shape with short texts and empty lists. */
function outlineOf(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, OUTLINED_CHARS);
  if (Array.isArray(value)) return [];
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, outlineOf(inner)]));
}
