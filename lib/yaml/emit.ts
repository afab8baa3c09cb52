/**
 * The one way in which the platform writes metadata YAML: block style, two spaces, strings plain when every reader
 * takes them for strings, else in double quotes, several lines as a literal block, one line feed at the end.
 * Source: docs/reference/metadata.md#canonical-form.
 */
import type { YamlValue } from './parse.ts';

// Texts that YAML 1.2 or an older reader would not read as text.
const LOOKS_LIKE_NUMBER =
  /^(?=[_,:eE]*[-+0-9.])[-+0-9_.,:eE]+$|^0[xob][0-9a-fA-F_]+$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/;
const LOOKS_LIKE_DATE = /^\d{4}-\d{1,2}-\d{1,2}/;
const LOOKS_LIKE_WORD = /^(?:null|true|false|yes|no|on|off|y|n)$/i;
const FIRST_UNSAFE = /^[-?:,[\]{}#&*!|>'"%@`~=<]/;
// Control characters, line ends of any kind, byte order mark, surrogates.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/u;

function isPlain(text: string): boolean {
  return (
    text !== '' &&
    text.trim() === text &&
    !UNPRINTABLE.test(text) &&
    !FIRST_UNSAFE.test(text) &&
    !/: | #|:$/.test(text) &&
    !LOOKS_LIKE_NUMBER.test(text) &&
    !LOOKS_LIKE_DATE.test(text) &&
    !LOOKS_LIKE_WORD.test(text) &&
    !/^(?:---|\.\.\.)/.test(text)
  );
}

const quoted = (text: string): string =>
  JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** A text of several lines that a literal block gives back exactly. */
function isLiteral(text: string): boolean {
  return (
    text.includes('\n') &&
    !UNPRINTABLE.test(text.replaceAll('\n', '')) &&
    !/^[ \n]|\n\n$/.test(text) &&
    text.trim() !== ''
  );
}

function literal(text: string, indent: string): string {
  const ends = text.endsWith('\n');
  const lines = (ends ? text.slice(0, -1) : text).split('\n');
  return `${ends ? '|' : '|-'}\n${lines.map((line) => (line === '' ? '' : indent + line)).join('\n')}`;
}

function scalar(value: string | number | boolean | null, indent: string): string {
  if (typeof value !== 'string') return Object.is(value, -0) ? '0' : String(value);
  if (isLiteral(value)) return literal(value, indent);
  return isPlain(value) ? value : quoted(value);
}

const key = (name: string): string => (isPlain(name) ? name : quoted(name));

/** Adds the lines of a list or a mapping that has items. */
function block(value: YamlValue[] | YamlMapping, indent: string, out: string[]): void {
  if (Array.isArray(value)) for (const item of value) listItem(item, indent, out);
  else
    for (const [name, item] of Object.entries(value)) {
      const text = inOneLine(item, indent);
      out.push(`${indent}${key(name)}:${text === null ? '' : ` ${text}`}`);
      if (text === null && isCollection(item)) block(item, `${indent}  `, out);
    }
}

function listItem(item: YamlValue, indent: string, out: string[]): void {
  const text = inOneLine(item, indent);
  if (text !== null) out.push(`${indent}- ${text}`);
  else if (isCollection(item)) {
    const [first = '', ...rest] = linesOf(item, `${indent}  `);
    out.push(`${indent}- ${first.slice(indent.length + 2)}`, ...rest);
  }
}

function linesOf(value: YamlValue[] | YamlMapping, indent: string): string[] {
  const lines: string[] = [];
  block(value, indent, lines);
  return lines;
}

type YamlMapping = { [key: string]: YamlValue };

const isCollection = (value: YamlValue): value is YamlValue[] | YamlMapping =>
  typeof value === 'object' && value !== null;

/** The value on the line of a key or a dash; null for a collection with items, which has lines of its own. */
function inOneLine(value: YamlValue, indent: string): string | null {
  if (!isCollection(value)) return scalar(value, `${indent}  `);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : null;
  return Object.keys(value).length === 0 ? '{}' : null;
}

/** Canonical YAML of a mapping. The caller has put its keys in order. */
export const emitYaml = (value: YamlMapping): string => `${linesOf(value, '').join('\n')}\n`;
