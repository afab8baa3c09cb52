/**
 * Metadata YAML as it may come in: YAML 1.2 core schema, one document, no anchors, aliases, tags, merge keys or
 * directives, no duplicate keys, bounded depth. The tree is walked by hand, so nothing is ever expanded.
 * Source: docs/reference/metadata.md.
 */

import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Scalar,
} from 'yaml';
import { compareDecimals, readDecimal } from '../../../lib/values/decimal-text.ts';

export interface Position {
  readonly line: number;
  readonly column: number;
}

export type YamlValue = null | boolean | number | string | YamlValue[] | { [key: string]: YamlValue };

export interface ParsedYaml {
  readonly value: YamlValue;
  /**
   * Where the value of an RFC 6901 pointer stands (its key, in a mapping); the nearest parent when it is absent. With
   * `offset`: where the character at this place of a text stands; the beginning of the text when its lines are folded.
   */
  position(pointer: string, offset?: number): Position;
}

export class YamlError extends Error {
  override readonly name = 'YamlError';
  readonly line: number;
  readonly column: number;

  constructor(message: string, at: Position) {
    super(message);
    this.line = at.line;
    this.column = at.column;
  }
}

const DEPTH_MAX = 32;
const START: Position = { line: 1, column: 1 };

/** Marks in one file: far more than a component needs, few enough to be parsed within half a second. */
export const MARKS_MAX = 50_000;

const isMark = (c: number): boolean =>
  c === 0x0a || c === 0x2c || c === 0x2d || c === 0x3a || c === 0x3f || c === 0x26 || c === 0x22 || c === 0x23;

/**
 * What a text can cost before it is parsed: its lines and the characters `, - : ? & " #` that start something new. Also
 * refuses flow collections that nest deeply, because they are parsed by recursion; brackets in plain text count as well.
 */
export function countMarks(text: string): number {
  let marks = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (isMark(c)) marks++;
    else if (c === 0x5b || c === 0x7b) {
      if (++depth > 500) throw new YamlError('The document nests too deeply.', START);
    } else if ((c === 0x5d || c === 0x7d) && depth > 0) depth--;
  }
  if (marks > MARKS_MAX) throw new YamlError('The file has too many lines and items.', START);
  return marks;
}

/** Parses one file. Throws YamlError with the line and column (from 1) of the first problem. */
export function parseYaml(source: string): ParsedYaml {
  const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
  countMarks(text);
  const lines = new LineCounter();
  const at = (offset: number | undefined): Position => {
    const { line, col } = lines.linePos(offset ?? 0);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  let documents: Document.Parsed[];
  try {
    const parsed = parseAllDocuments(text, {
      version: '1.2',
      schema: 'core',
      merge: false,
      strict: true,
      // The parser's own check compares every key with every other; ours is a set.
      uniqueKeys: false,
      prettyErrors: false,
      lineCounter: lines,
      logLevel: 'silent',
    });
    documents = Array.isArray(parsed) ? (parsed as Document.Parsed[]) : [];
  } catch (error) {
    if (error instanceof RangeError) throw new YamlError('The document nests too deeply.', START);
    throw error;
  }
  const [document, second] = documents;
  if (!document) throw new YamlError('The file is empty.', START);
  const error = document.errors[0] ?? document.warnings[0];
  if (error) {
    const deep = error.message.includes('call stack');
    throw new YamlError(deep ? 'The document nests too deeply.' : error.message, at(error.pos[0]));
  }
  if (second) throw new YamlError('The file holds more than one document.', at(second.range?.[0]));
  if (document.directives?.docStart === true && /^%/m.test(text.slice(0, text.indexOf('---'))))
    throw new YamlError('Directives are not allowed.', START);

  const positions = new Map<string, Position>();
  const texts = new Map<string, Scalar<string>>();
  const walk = (node: Node | null, pointer: string, depth: number): YamlValue => {
    const here = at(node?.range?.[0]);
    if (node === null) return null;
    positions.set(pointer, here);
    if (depth > DEPTH_MAX) throw new YamlError(`The document nests deeper than ${DEPTH_MAX} levels.`, here);
    if (isAlias(node)) throw new YamlError('Aliases are not allowed.', here);
    if ((node as { anchor?: string }).anchor) throw new YamlError('Anchors are not allowed.', here);
    if (!isUntagged(node)) throw new YamlError('Tags are not allowed.', here);
    if (isScalar(node)) {
      const { value } = node;
      if (value === null || typeof value === 'boolean') return value;
      if (typeof value === 'string') {
        texts.set(pointer, node as Scalar<string>);
        return storable(value, here);
      }
      if (typeof value === 'number') {
        if (!Number.isFinite(value)) throw new YamlError('Not a finite number.', here);
        if ((Number.isInteger(value) && !Number.isSafeInteger(value)) || !isExact(String(node.source), value))
          throw new YamlError('The number cannot be held exactly; write it in quotes.', here);
        return value;
      }
      throw new YamlError('Not a plain value.', here);
    }
    if (isSeq(node)) return node.items.map((item, i) => walk(item as Node | null, `${pointer}/${i}`, depth + 1));
    if (isMap(node)) {
      const result: { [key: string]: YamlValue } = {};
      const seen = new Set<string>();
      for (const pair of node.items) {
        if (!isPair(pair)) throw new YamlError('Not a mapping.', here);
        const keyNode = pair.key as Node | null;
        const keyAt = at(keyNode?.range?.[0] ?? node.range?.[0]);
        if (!isScalar(keyNode)) throw new YamlError('Keys are plain text.', keyAt);
        if ((keyNode as { anchor?: string }).anchor) throw new YamlError('Anchors are not allowed.', keyAt);
        if (!isUntagged(keyNode)) throw new YamlError('Tags are not allowed.', keyAt);
        if (keyNode.value === '<<') throw new YamlError('Merge keys are not allowed.', keyAt);
        const key = typeof keyNode.value === 'string' ? keyNode.value : (keyNode.source ?? '');
        storable(key, keyAt);
        if (seen.has(key)) throw new YamlError(`The key ${JSON.stringify(key.slice(0, 100))} stands twice.`, keyAt);
        seen.add(key);
        const child = `${pointer}/${escapePointer(key)}`;
        positions.set(child, keyAt);
        // defineProperty: the key may be __proto__
        Object.defineProperty(result, key, {
          value: walk(pair.value as Node | null, child, depth + 1),
          enumerable: true,
          configurable: true,
          writable: true,
        });
        positions.set(child, keyAt);
      }
      return result;
    }
    throw new YamlError('Not a plain value.', here);
  };
  const value = walk(document.contents as Node | null, '', 1);
  return {
    value,
    position(pointer, offset) {
      const scalar = offset === undefined ? undefined : texts.get(pointer);
      if (scalar?.range) return at(placeInText(text, scalar, offset!));
      for (let p = pointer; p; p = p.slice(0, p.lastIndexOf('/'))) {
        const found = positions.get(p);
        if (found) return found;
      }
      return positions.get('') ?? START;
    },
  };
}

/** Whether a number is the one that is written, and not the nearest to it that a double can be. */
function isExact(written: string, value: number): boolean {
  if (written === String(value) || /^[-+]?0[xo]/.test(written)) return true;
  // The grammar of YAML is wider than that of JSON: `+1`, `01`, `.5`, `1.`.
  const text = written
    .replace(/^\+/, '')
    .replace(/^(-?)0+(?=[0-9])/, '$1')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?=e|$)/i, '');
  const [read, held] = [readDecimal(text), readDecimal(value)];
  return read !== null && held !== null && compareDecimals(read, held) === 0;
}

/** Offset in the file of the character at `offset` of a text. */
function placeInText(file: string, { value, type, range }: Scalar<string>, offset: number): number {
  const [start, end] = range!;
  if (type === 'BLOCK_LITERAL') {
    const before = value.slice(0, offset).split('\n');
    let line = file.indexOf('\n', start) + 1;
    for (let i = 1; i < before.length; i++) line = file.indexOf('\n', line) + 1;
    // What a line of the file has more than that of the text is its indentation.
    const written = /^[^\r\n]*/.exec(file.slice(line))![0].length;
    const indent = written - value.split('\n')[before.length - 1]!.length;
    return line + indent + before.at(-1)!.length;
  }
  // A text that goes on in the next line has been folded: characters no longer stand where they stood.
  if (type === 'BLOCK_FOLDED' || file.slice(start, end).includes('\n')) return start;
  if (type === 'PLAIN') return start + offset;
  let at = start + 1;
  for (let i = 0; i < offset && at < end - 1; i++) at += widthAt(file, at, type === 'QUOTE_DOUBLE');
  return at;
}

/** How many characters of a quoted text stand for the one at `at`. */
function widthAt(file: string, at: number, double: boolean): number {
  if (!double) return file.startsWith("''", at) ? 2 : 1;
  return file[at] === '\\' ? 2 + ({ x: 2, u: 4, U: 8 }[file[at + 1]!] ?? 0) : 1;
}

/** Text that PostgreSQL cannot hold: NUL, half of a surrogate pair. */
function storable(text: string, at: Position): string {
  if (text.includes('\0') || !text.isWellFormed())
    throw new YamlError('The text has a character that cannot be stored.', at);
  return text;
}

/** The parser gives a tag only to nodes that bear one in the file. */
const isUntagged = (node: Node): boolean => (node as { tag?: string }).tag === undefined;

export const escapePointer = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
