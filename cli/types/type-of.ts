/**
 * TypeScript of a JSON Schema, for the schemas of `GET /objects/{objectApiName}/schema.json`. Everything that comes from
 * a tenant is quoted: labels cannot end their comment, nor values their string.
 */
import { stripVTControlCharacters } from 'node:util';

/** The keywords that decide a type; all others narrow its values and leave it as it is. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const HIDDEN = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const INDENT = '  ';

/** The type of the values that a schema takes. */
export function typeOf(schema: JsonSchema, indent = ''): string {
  if (schema.enum) return unionOf(schema.enum.map(literal));
  if (schema.anyOf) return unionOf(schema.anyOf.map((one) => typeOf(one, indent)));
  const types = schema.type === undefined ? [] : [schema.type].flat();
  return types.length === 0 ? 'unknown' : unionOf(types.map((type) => plainType(type, schema, indent)));
}

function plainType(type: string, { items = {}, ...schema }: JsonSchema, indent: string): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'number':
    case 'null':
      return type;
    case 'integer':
      return 'number';
    case 'array':
      return `Array<${typeOf(items, indent)}>`;
    case 'object':
      return schema.properties ? membersOf(schema, indent) : 'Record<string, unknown>';
    default:
      return 'unknown';
  }
}

/** `{ … }` with a line per property, by name: the order of the configuration decides nothing. */
export function membersOf({ properties = {}, required = [] }: JsonSchema, indent = ''): string {
  const inner = indent + INDENT;
  const lines = Object.keys(properties)
    .sort()
    .flatMap((name) => {
      const schema = properties[name] ?? {};
      const key = IDENTIFIER.test(name) ? name : literal(name);
      const optional = required.includes(name) ? '' : '?';
      return [...comment(schema, inner), `${inner}${key}${optional}: ${typeOf(schema, inner)};`];
    });
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${indent}}`;
}

/** A schema's description as the lines of a comment. */
export function comment({ title, description, deprecated }: JsonSchema, indent = ''): string[] {
  const texts = [[title, description].filter(Boolean).join(': '), deprecated ? '@deprecated' : ''];
  const lines = texts.filter(Boolean).flatMap((text) =>
    text
      .split(/\r\n|[\n\r]/)
      .map(safe)
      .filter(Boolean),
  );
  if (lines.length < 2) return lines.map((line) => `${indent}/** ${line} */`);
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`), `${indent} */`];
}

/** Text that stays in its comment, and looks like what it is. */
const safe = (text: string): string =>
  stripVTControlCharacters(text).replace(HIDDEN, ' ').replaceAll('*/', '*\\/').trim();

/** A string as source; anything else as it is in JSON. */
function literal(value: unknown): string {
  const json = JSON.stringify(value).replace(
    HIDDEN,
    (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return typeof value === 'string' ? `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'` : json;
}

const unionOf = (types: readonly string[]): string => [...new Set(types)].join(' | ') || 'never';
