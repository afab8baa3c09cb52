/** Files of every kind with any content that its JSON Schema takes, texts as awkward as people and programs write them. */
import fc from 'fast-check';
import type { Body } from '../../services/metadata/kinds/component.ts';
import type { Kind } from '../../services/metadata/kinds/kind.ts';

export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly minProperties?: number;
}

const AWKWARD = [
  ...['yes', 'No', 'on', 'y', 'null', '~', 'True', '0o17', '017', '0x1F', '1e3', '1_000', '12:30', '.inf', '-.NaN'],
  ...['2026-01-01', '2026-01-01T00:00:00Z', '=', '<<', '-', '- a', '? a', 'a: b', 'a:', ': a', 'a #b', '#', '# a'],
  ...['*a', '&a', '!a', '%a', '@a', '`a', '|', '>', '"', "'", '{a}', '[a]', ',', '---', '--- a', '...', 'a: "b"'],
  ...[' a', 'a ', '\ta', 'a\t', 'a\nb', 'a\n', '\na', 'a\n\nb', 'a\n \nb', ' a\nb', 'a\nb ', 'a\n\n', '\n', 'a\r\nb'],
  ...['a\rb', 'a\u0085b', 'a\u2028b', 'a\u2029', '\ufeffa', 'a\u200b', '\u00a0a', 'a\u0007', '\u007f', 'e\u0301'],
  ...[
    '\u0958',
    '\u202eabc',
    '👩‍👩‍👧',
    '🇵🇹',
    '𝒳',
    'Größe',
    '価格',
    'سعر',
    'a\\nb',
    '\\',
    '"\\"',
    "it's",
    '# a\nb: c\n- d',
  ],
];
const isKey = (key: string): boolean =>
  key !== '<<' && key !== '__proto__' && key.isWellFormed() && !key.includes('\0');

const text: fc.Arbitrary<string> = fc
  .oneof(
    fc.constantFrom(...AWKWARD),
    fc.tuple(fc.constantFrom(...AWKWARD), fc.constantFrom(...AWKWARD)).map((parts) => parts.join('')),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }),
  )
  .filter((it) => it.isWellFormed() && !it.includes('\0'));

const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom(...AWKWARD)).filter(isKey), tie('value'), {
      maxKeys: 3,
    }),
  ),
})).value;

const MARKS = /\p{M}{20}/u;

function texts({ pattern, minLength = 0, maxLength = 1_000 }: Schema): fc.Arbitrary<string> {
  // What anything may stand in is filtered; what has a form is made by it.
  const anything = pattern === undefined || pattern === '\\S' || pattern.startsWith('^\\S');
  const matches = new RegExp(pattern ?? '', 'u');
  return (anything ? text : fc.stringMatching(matches)).filter((value) => {
    const stored = value.normalize('NFC');
    const { length } = [...stored];
    return length >= minLength && length <= maxLength && matches.test(stored) && !MARKS.test(value);
  });
}

function arbitrary(schema: Schema): fc.Arbitrary<unknown> {
  const { enum: values, const: only, type, items, minItems = 0, maxItems = 4 } = schema;
  if (only !== undefined) return fc.constant(only);
  if (values) return fc.constantFrom(...values);
  if (type === 'string') return texts(schema);
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer') return fc.integer({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9 });
  if (type === 'number')
    return fc.double({
      min: schema.minimum ?? -1e9,
      max: schema.maximum ?? 1e9,
      noNaN: true,
      noDefaultInfinity: true,
    });
  if (type === 'array') {
    const bounds = { minLength: minItems, maxLength: Math.min(maxItems, Math.max(minItems, 4)) };
    const item = arbitrary(items ?? {});
    const selector = (value: unknown): string => JSON.stringify(value).normalize('NFC');
    return schema.uniqueItems ? fc.uniqueArray(item, { ...bounds, selector }) : fc.array(item, bounds);
  }
  if (schema.properties)
    return fields(schema.properties, schema.required ?? []).filter(
      (value) => Object.keys(value).length >= (schema.minProperties ?? 0),
    );
  if (schema.patternProperties) {
    const [[pattern, value] = ['', {}]] = Object.entries(schema.patternProperties);
    const key = pattern === '' || pattern.startsWith('^.') ? text : fc.stringMatching(new RegExp(pattern, 'u'));
    const keys = key.filter((it) => isKey(it) && new RegExp(pattern, 'u').test(it));
    return fc.dictionary(keys, arbitrary(value), { minKeys: schema.minProperties ?? 0, maxKeys: 4 });
  }
  return json.filter((value) => value !== null);
}

const fields = (properties: Readonly<Record<string, Schema>>, required: readonly string[]): fc.Arbitrary<object> =>
  fc.record(Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, arbitrary(schema)])), {
    requiredKeys: [...required],
    noNullPrototype: true,
  });

/** A body that the schema of a kind takes. */
export const bodyOf = (kind: Kind): fc.Arbitrary<Body> => arbitrary(kind.schema as Schema) as fc.Arbitrary<Body>;
