/**
 * Metadata YAML as it may come in: YAML 1.2 core schema, one document, no anchors, aliases, tags, merge keys or
 * directives, no duplicate keys, bounded depth. The tree is walked by hand, so nothing is ever expanded.
 * Source: docs/reference/metadata.md.
 */

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { pointerPart } from '../errors/pointer.ts';
import { compareDecimals, readDecimal } from '../values/decimal-text.ts';

export interface Position {
  readonly line: number;
  readonly column: number;
}

export type YamlValue = null | boolean | number | string | YamlValue[] | { [key: string]: YamlValue };

export interface ParsedYaml {
  readonly value: YamlValue;
  /**
   * Position of the value of an RFC 6901 pointer (of its key, in a mapping); of the nearest parent when it is absent. With
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
const MARKS_MAX = 50_000;

/** By code: the characters each of which can become a token, a node or an error of its own. */
const MARKS = new Uint8Array(128);
for (const mark of '\n,-:?&*!%"\'#[]{}') MARKS[mark.charCodeAt(0)] = 1;

/**
 * Upper bound of the cost of parsing a text: its lines and the characters that can start or end something, wherever they
 * stand. Also refuses flow collections that nest deeply, because they are parsed by recursion.
 */
export function countMarks(text: string): number {
  let marks = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 128 || MARKS[c] === 0) continue;
    marks++;
    if (c === 0x5b || c === 0x7b) {
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
  refuseUnprintable(text);
  const lines = new LineCounter();
  const at: Locate = (offset) => {
    const { line, col } = lines.linePos(offset ?? 0);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const document = onlyDocument(text, lines, at);
  const tree = new Tree(text, at);
  const value = tree.read(document.contents, '', 1);
  return {
    value,
    position(pointer, offset) {
      const scalar = offset === undefined ? undefined : tree.texts.get(pointer);
      if (offset !== undefined && scalar) return at(placeInText(text, scalar, offset));
      for (let p = pointer; p; p = p.slice(0, p.lastIndexOf('/'))) {
        const found = tree.positions.get(p);
        if (found) return found;
      }
      return tree.positions.get('') ?? START;
    },
  };
}

/**
 * Characters that no file may contain unescaped: control characters but tab and line ends, halves of surrogate pairs, and what Unicode
 * keeps out of texts. A carriage return by itself is a line end to some readers and text to others, and so a second byte
 * order mark.
 */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ud800-\udfff\ufffe\uffff]|\r(?!\n)|^\ufeff/u;

function refuseUnprintable(text: string): void {
  const at = text.search(UNPRINTABLE);
  if (at < 0) return;
  const before = text.slice(0, at);
  const code = text.codePointAt(at)?.toString(16).toUpperCase().padStart(4, '0');
  throw new YamlError(`The file holds the character U+${code}; in a text, write it as an escape in double quotes.`, {
    line: before.split('\n').length,
    column: at - before.lastIndexOf('\n'),
  });
}

/** Line and column of an offset in the file. */
type Locate = (offset: number | undefined) => Position;

/** The line with which git begins what it could not merge. */
const CONFLICT = /^<{7}(?: |\r?$)/m;

/** The one document of a file, without syntax errors and directives. */
function onlyDocument(text: string, lines: LineCounter, at: Locate): Document.Parsed {
  const [document, second] = documentsOf(text, lines);
  if (!document) throw new YamlError('The file is empty.', START);
  const error = document.errors[0] ?? document.warnings[0];
  if (error) {
    const conflict = text.search(CONFLICT);
    if (conflict >= 0) throw new YamlError('The file has an unresolved merge conflict.', at(conflict));
    const deep = error.message.includes('call stack');
    throw new YamlError(deep ? 'The document nests too deeply.' : error.message, at(error.pos[0]));
  }
  if (second) throw new YamlError('The file holds more than one document.', at(second.range?.[0]));
  if (document.directives?.docStart === true && /^%/m.test(text.slice(0, text.indexOf('---'))))
    throw new YamlError('Directives are not allowed.', START);
  return document;
}

function documentsOf(text: string, lines: LineCounter): readonly Document.Parsed[] {
  try {
    return parseAllDocuments(text, {
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
  } catch (error) {
    if (error instanceof RangeError) throw new YamlError('The document nests too deeply.', START);
    throw error;
  }
}

/** Reads the nodes of a document into values and remembers where each stands. */
class Tree {
  readonly positions = new Map<string, Position>();
  readonly texts = new Map<string, TextNode>();
  readonly #text: string;
  readonly #at: Locate;

  constructor(text: string, at: Locate) {
    this.#text = text;
    this.#at = at;
  }

  /** The value of a node; `pointer` is where it stands in the document. */
  read(node: ParsedNode | null, pointer: string, depth: number): YamlValue {
    if (node === null) return null;
    const here = this.#at(node.range[0]);
    this.positions.set(pointer, here);
    if (depth > DEPTH_MAX) throw new YamlError(`The document nests deeper than ${DEPTH_MAX} levels.`, here);
    if (isAlias(node)) throw new YamlError('Aliases are not allowed.', here);
    this.#refuseMarks(node);
    if (isScalar(node)) return this.#scalar(node, pointer, here);
    if (isSeq(node)) return node.items.map((item, i) => this.read(item, `${pointer}/${i}`, depth + 1));
    if (isMap(node)) return this.#mapping(node, pointer, depth);
    throw new YamlError('The value is not a text, number, boolean, list or mapping.', here);
  }

  #scalar(node: Scalar.Parsed, pointer: string, here: Position): YamlValue {
    const { value, type, range } = node;
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'string') {
      this.texts.set(pointer, { value, type, range });
      return storable(value, here);
    }
    if (typeof value !== 'number') throw new YamlError('The value is not a text, number or boolean.', here);
    if (!Number.isFinite(value)) throw new YamlError('The number is not finite.', here);
    if ((Number.isInteger(value) && !Number.isSafeInteger(value)) || !isExact(String(node.source), value))
      throw new YamlError('The number cannot be held exactly; write it in quotes.', here);
    return value;
  }

  #mapping(node: YAMLMap.Parsed, pointer: string, depth: number): YamlValue {
    const result: { [key: string]: YamlValue } = {};
    for (const { key: keyNode, value } of node.items) {
      const keyAt = this.#at(keyNode?.range[0] ?? node.range[0]);
      const key = this.#keyText(keyNode, keyAt);
      if (Object.hasOwn(result, key)) throw new YamlError(`Duplicate key ${JSON.stringify(key.slice(0, 100))}.`, keyAt);
      const child = `${pointer}/${pointerPart(key)}`;
      this.positions.set(child, keyAt);
      // defineProperty: the key may be __proto__
      Object.defineProperty(result, key, {
        value: this.read(value, child, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
      this.positions.set(child, keyAt);
    }
    return result;
  }

  #keyText(node: ParsedNode | null, at: Position): string {
    if (!isScalar(node)) throw new YamlError('Keys are plain text.', at);
    this.#refuseMarks(node);
    const { value, source = '' } = node;
    if (value === '<<') throw new YamlError('Merge keys are not allowed.', at);
    // Readers that make texts of keys write the value: `~` as null, `0x10` as 16.
    if (String(value) !== source && typeof value !== 'string')
      throw new YamlError('Keys are plain text; write this one in quotes.', at);
    return storable(String(value), at);
  }

  /** The parser gives a tag only to nodes that bear one in the file. */
  #refuseMarks({ anchor, tag, range }: { anchor?: string; tag?: string; range: readonly [number, number, number] }) {
    if (!anchor && tag === undefined) return;
    throw new YamlError(
      anchor ? 'Anchors are not allowed.' : 'Tags are not allowed.',
      this.#at(startOfMarks(this.#text, range[0])),
    );
  }
}

/** Start of a node including its anchor and tag, which precede it. */
function startOfMarks(text: string, node: number): number {
  let start = node;
  for (;;) {
    let word = text.slice(0, start).trimEnd().length;
    while (word > 0 && !' \t\n,[{'.includes(text.charAt(word - 1))) word--;
    if (word >= start || !'&!'.includes(text.charAt(word))) return start;
    start = word;
  }
}

/** True when a double represents the written number exactly. */
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

/** A text of the document, and how and where it is written. */
interface TextNode {
  readonly value: string;
  readonly type: Scalar.Type | undefined;
  readonly range: readonly [number, number, number];
}

/** Offset in the file of the character at `offset` of a text. */
function placeInText(file: string, { value, type, range: [start, end] }: TextNode, offset: number): number {
  if (type === 'BLOCK_LITERAL') {
    const before = value.slice(0, offset).split('\n');
    const row = before.length - 1;
    let line = file.indexOf('\n', start) + 1;
    for (let i = 0; i < row; i++) line = file.indexOf('\n', line) + 1;
    // The excess of a file's line over that of the text is its indentation.
    const written = file.slice(line).search(/[\r\n]|$/);
    const indent = written - (value.split('\n')[row] ?? '').length;
    return line + indent + (before[row] ?? '').length;
  }
  // A text that goes on in the next line has been folded: characters no longer stand where they stood.
  if (type === 'BLOCK_FOLDED' || file.slice(start, end).includes('\n')) return start;
  if (type === 'PLAIN') return start + offset;
  let at = start + 1;
  for (let i = 0; i < offset && at < end - 1; i++) at += widthAt(file, at, type === 'QUOTE_DOUBLE');
  return at;
}

/** Characters that an escape sequence has behind its backslash and letter. */
const ESCAPE_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** How many characters of a quoted text stand for the one at `at`. */
function widthAt(file: string, at: number, double: boolean): number {
  if (!double) return file.startsWith("''", at) ? 2 : 1;
  return file[at] === '\\' ? 2 + (ESCAPE_DIGITS[file.charAt(at + 1)] ?? 0) : 1;
}

/** Text that PostgreSQL cannot hold: NUL, half of a surrogate pair. */
function storable(text: string, at: Position): string {
  if (text.includes('\0') || !text.isWellFormed())
    throw new YamlError('The text has a character that cannot be stored.', at);
  return text;
}
