/**
 * The one way in which the platform writes metadata YAML: block style, two spaces, strings plain when every reader
 * takes them for strings, else in double quotes, several lines as a literal block, one line feed at the end.
 * Source: docs/reference/metadata.md#canonical-form.
 */
import type { YamlValue } from './parse.ts';

// What YAML 1.2 or an older reader would take for something else than text.
const LOOKS_LIKE_NUMBER =
  /^[-+0-9_.,:eE]*[-+0-9.][-+0-9_.,:eE]*$|^0[xob][0-9a-fA-F_]+$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/;
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

function block(value: YamlValue, indent: string, out: string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (item !== null && typeof item === 'object' && Object.keys(item).length > 0) {
        const inner: string[] = [];
        block(item, `${indent}  `, inner);
        inner[0] = `${indent}- ${inner[0]!.slice(indent.length + 2)}`;
        out.push(...inner);
      } else out.push(`${indent}- ${empty(item) ?? scalar(item as string, `${indent}  `)}`);
    }
    return;
  }
  for (const [name, item] of Object.entries(value as { [key: string]: YamlValue })) {
    const none = empty(item);
    if (none !== null) out.push(`${indent}${key(name)}: ${none}`);
    else if (item !== null && typeof item === 'object') {
      out.push(`${indent}${key(name)}:`);
      block(item, `${indent}  `, out);
    } else out.push(`${indent}${key(name)}: ${scalar(item, `${indent}  `)}`);
  }
}

function empty(value: YamlValue): string | null {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : null;
  if (value !== null && typeof value === 'object') return Object.keys(value).length === 0 ? '{}' : null;
  return null;
}

/** Canonical YAML of a mapping. The caller has put its keys in order. */
export function emitYaml(value: { [key: string]: YamlValue }): string {
  const out: string[] = [];
  block(value, '', out);
  return `${out.join('\n')}\n`;
}
