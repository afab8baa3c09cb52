/** Random tenants: objects with fields of every type, records that are awkward on purpose, and tables that hold them. */
import fc from 'fast-check';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Access } from '../../../lib/access/types.ts';
import { operatorsFor, searchable, sortable } from '../../../lib/query/capabilities.ts';
import type { QueryView } from '../../../lib/query/types.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { OPERATORS } from '../../../lib/schema/field-types/types.ts';
import type { FieldMeta, FieldTypeName, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { compileFormula, linkFormulas } from '../../../services/metadata/kinds/compile-formula.ts';
import { aField, anObject, aPrincipal, aProfile, aSnapshot } from '../../support/snapshots.ts';
import { type RawCondition, type RawQuery, type Row, type Tables, typeOf, type Value } from './evaluate.ts';

export type Generate = fc.GeneratorValue;

export interface World extends Tables {
  readonly snapshot: Snapshot;
  readonly access: Access;
  readonly view: QueryView;
  /** `<Object>.<field>` */
  readonly hidden: ReadonlySet<string>;
}

const STORED_TYPES: readonly FieldTypeName[] = [
  'text',
  'longText',
  'richText',
  'integer',
  'decimal',
  'currency',
  'percent',
  'boolean',
  'date',
  'dateTime',
  'time',
  'duration',
  'picklist',
  'multiPicklist',
  'reference',
  'email',
  'phone',
  'url',
  'geolocation',
  'address',
  'file',
  'json',
];

/** Letters on which Intl.Collator, unaccent and Unicode decomposition agree with each other. */
const LETTERS = [
  'a',
  'A',
  'b',
  'B',
  'e',
  'é',
  'É',
  'z',
  'ö',
  'Ö',
  'д',
  'Д',
  '1',
  '2',
  ' ',
  '%',
  '_',
  '\\',
  "'",
  '"',
  '-',
  '中',
  '\n',
];
const aChoice = (value: string) => ({ value, label: value, active: true, default: false, validFor: null });
const OPTIONS = ['draft', 'sent', 'paid', 'Ümlaut', ' ', 'a,b', '{x}'];

/** Moments around which clocks change in Berlin, New York and Lord Howe, and ordinary ones. */
const MOMENTS = [
  '2026-03-29T00:59:59.999Z',
  '2026-03-29T01:00:00Z',
  '2026-03-28T23:00:00Z',
  '2026-03-29T22:00:00Z',
  '2026-10-24T22:00:00Z',
  '2026-10-25T00:30:00Z',
  '2026-10-25T22:59:59.999Z',
  '2026-10-25T23:00:00Z',
  '2026-03-08T05:00:00Z',
  '2026-03-09T04:00:00Z',
  '2026-11-01T04:00:00Z',
  '2026-11-02T05:00:00Z',
  '2026-12-31T23:00:00Z',
  '2027-01-01T00:00:00Z',
  '2024-02-29T12:00:00.5Z',
].map((text) => Date.parse(text));

export const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Pacific/Kiritimati',
  'Asia/Kolkata',
];

const uuid = (g: Generate, among: number): string =>
  `01939f6e-0000-7000-8000-${g(fc.integer, { min: 1, max: among }).toString(16).padStart(12, '0')}`;

export const pick = <T>(g: Generate, list: readonly T[]): T => g(() => fc.constantFrom(...list));

const moment = (g: Generate): number =>
  pick(g, MOMENTS) + pick(g, [0, 0, 1, -1, 3_600_000, -3_600_000, 86_400_000, 12_345_678]);

/** A value of a field in the form evaluate.ts works on; never null. */
function valueFor(g: Generate, field: FieldMeta): Exclude<Value, null> {
  switch (typeOf(field)) {
    case 'text':
    case 'longText':
    case 'richText':
      return g(() => fc.array(fc.constantFrom(...LETTERS), { maxLength: 4 })).join('');
    case 'integer':
      return pick(g, [0, 1, -1, 7, 42, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 1_000_000]);
    case 'decimal':
    case 'currency':
    case 'percent': {
      const { precision, scale } = field;
      const extreme = `${'9'.repeat(precision! - scale!)}.${'9'.repeat(scale!)}`;
      return pick(g, ['0', '0.1', '-0.1', '0.3', '12.5', '12.49', '7', extreme, `-${extreme}`]).replace(/\.$/, '');
    }
    case 'boolean':
      return g(fc.boolean);
    case 'date':
      return new Date(moment(g)).toISOString().slice(0, 10);
    case 'dateTime':
      return moment(g);
    case 'time':
      return pick(g, ['00:00', '09:30:00', '09:30', '09:30:00.5', '09:30:00.123', '23:59:59.999', '12:00:01']);
    case 'duration':
      return pick(g, [
        'P1D',
        'PT24H',
        'PT1H30M',
        'P1M',
        'P30D',
        'P1Y',
        'P2W',
        'PT0.5S',
        'P1Y2M3W4DT5H6M7.000001S',
        'PT0S',
      ]);
    case 'picklist':
      return pick(g, OPTIONS);
    case 'multiPicklist':
      return g(() => fc.subarray(OPTIONS, { maxLength: 3 }));
    case 'id':
    case 'reference':
    case 'file':
      return uuid(g, 12);
    case 'email':
      return pick(g, ['ada@example.com', 'Ada@example.com', 'sam@example.org', 'é@example.com']);
    case 'phone':
      return pick(g, ['+49 30 1', '030-111', '(030) 222']);
    case 'url':
      return pick(g, ['https://example.com', 'https://example.com/a?b=1_2', 'http://b.example/%20']);
    case 'geolocation':
      return { latitude: 52.5, longitude: pick(g, [-180, 13.4]) };
    case 'address':
      return { street: null, city: pick(g, ['Berlin', 'Köln']), state: null, postalCode: null, country: null };
    case 'json':
      return pick<Record<string, unknown>>(g, [{}, { a: [1, 'ü', null] }, { n: 0.1 }]);
    default:
      throw new Error(`No values for ${typeOf(field)}`);
  }
}

/** Types that a formula gives. */
const isResult = ({ fieldType }: FieldMeta): boolean =>
  ['text', 'boolean', 'integer', 'decimal', 'currency', 'percent', 'date', 'dateTime'].includes(fieldType);
const ROLLED: readonly string[] = ['integer', 'decimal', 'currency', 'percent', 'date', 'dateTime'];

function randomObject(g: Generate, apiName: string, other: string): ObjectMeta {
  const types = g(() => fc.subarray([...STORED_TYPES], { minLength: 4, maxLength: 9 }));
  const fields = types.map((type) => {
    const scale = pick(g, [0, 2, 6]);
    const decimal = type === 'decimal' || type === 'currency' || type === 'percent';
    const externalId = g(fc.boolean);
    const length = type === 'text' ? { length: 200 } : {};
    const ownCurrency = type === 'currency' && types.includes('picklist') && g(fc.boolean);
    const currency = ownCurrency ? { currencyField: 'picklist__c' } : {};
    const picklist = type === 'picklist' ? { picklistValues: g(() => fc.shuffledSubarray(OPTIONS)).map(aChoice) } : {};
    const more = decimal ? { precision: scale + 10, scale, ...currency } : { externalId, ...length, ...picklist };
    return aField(`${type}__c`, type, more);
  });
  for (const { fieldType: resultType, apiName: source, precision, scale } of fields.filter(isResult)) {
    const formula = { expression: `record.name == "x" ? record.${source} : record.${source}`, resultType };
    const digits = precision === null || scale === null ? {} : { precision, scale };
    fields.push(aField(`Same_${source}`, 'formula', compileFormula({ formula, ...digits })));
    const rollup = { childObject: other, referenceField: 'Other__c', function: 'max', field: source } as const;
    if (ROLLED.includes(resultType))
      fields.push(
        aField(`Rolled_${source}`, 'rollup', {
          rollup: { ...rollup, resultType, criteria: null, reads: [], cascades: false },
          precision,
          scale,
        }),
      );
  }
  const unscaled = g(fc.boolean);
  fields.push(aField('Other__c', 'reference', { referenceTo: [other] }));
  const searched = ['name', 'text__c', 'longText__c', 'email__c'].filter(
    (name) => name === 'name' || fields.some((field) => field.apiName === name),
  );
  const object = anObject(apiName, fields, { defaultSearchFields: unscaled ? searched : ['name'] });
  linkFormulas(object, 'UTC');
  return object;
}

function randomRows(g: Generate, object: ObjectMeta, count: number): Row[] {
  return Array.from({ length: count }, (_, index) => {
    const row: Row = {};
    for (const field of Object.values(object.fields)) {
      if (field.apiName === 'id') row.id = `01939f6e-0000-7000-8000-${(index + 1).toString(16).padStart(12, '0')}`;
      else if (field.apiName === 'recordVersion') row.recordVersion = pick(g, [1, 35, 36, 1_000_000]);
      else if (field.apiName === 'recordTypeApiName') row.recordTypeApiName = null;
      else if (field.system) row[field.apiName] = valueFor(g, field);
      else if (!field.formula) row[field.apiName] = g(fc.nat, { max: 9 }) < 2 ? null : valueFor(g, field);
    }
    for (const { apiName, formula } of Object.values(object.fields))
      if (formula) row[apiName] = row[apiName.replace('Same_', '')]!;
    // Numbers with more decimals than the field takes are not storable, and so not stored.
    for (const field of Object.values(object.fields))
      if (row[field.apiName] !== null && field.scale !== null)
        row[field.apiName] = cut(String(row[field.apiName]), field.scale);
    return row;
  });
}

const cut = (number: string, scale: number): string => {
  const [whole, fraction = ''] = number.split('.');
  const kept = fraction.slice(0, scale);
  const text = kept === '' ? whole! : `${whole}.${kept}`;
  return /^-0(\.0*)?$/.test(text) ? '0' : text;
};

export function randomWorld(g: Generate): World {
  const objects = [randomObject(g, 'Order__c', 'Account'), randomObject(g, 'Account', 'Order__c')];
  const rows = {
    Order__c: randomRows(g, objects[0]!, g(fc.integer, { min: 0, max: 30 })),
    Account: randomRows(g, objects[1]!, g(fc.integer, { min: 0, max: 12 })),
  };
  const candidates = objects.flatMap((object) =>
    Object.values(object.fields)
      .filter((field) => !field.system && field.apiName !== 'name' && field.apiName !== 'Other__c')
      .map((field) => `${object.apiName}.${field.apiName}`),
  );
  const hidden = new Set(g(() => fc.subarray(candidates, { maxLength: 3 })));
  const snapshot = aSnapshot(objects, [aProfile(objects, hidden)]);
  const access = accessFor(snapshot, aPrincipal());
  const now = moment(g);
  const timezone = pick(g, ZONES);
  return {
    objects: snapshot.objects as Record<string, ObjectMeta>,
    rows,
    now,
    timezone,
    snapshot,
    access,
    hidden,
    view: { access, snapshot, now, timezone },
  };
}

const quoted = (name: string): string => `"${name}"`;

const storedFields = (object: ObjectMeta): FieldMeta[] =>
  Object.values(object.fields).filter((field) => !field.formula);
const columnTypeOf = (field: FieldMeta): string | null => fieldType(typeOf(field)).columnType(field);

/** Tables of a world in a schema of its own, as the metadata service makes them. */
export async function storeWorld(world: World, database: Database, schema: string): Promise<void> {
  const statements = [
    `DROP SCHEMA IF EXISTS ${quoted(schema)} CASCADE`,
    `CREATE SCHEMA ${quoted(schema)}`,
    `CREATE TABLE ${quoted(schema)}."_state" (metadata_version integer NOT NULL, access_version integer NOT NULL)`,
    `INSERT INTO ${quoted(schema)}."_state" VALUES (1, 7)`,
  ];
  for (const object of Object.values(world.objects)) {
    const columns = storedFields(object).map((field) => {
      const type = field.apiName === 'recordVersion' ? 'integer' : columnTypeOf(field);
      return `${quoted(field.apiName)} ${type}${field.system && field.apiName !== 'recordTypeApiName' ? ' NOT NULL' : ''}`;
    });
    statements.push(
      `CREATE TABLE ${quoted(schema)}.${quoted(object.apiName)} (${columns.join(', ')}, PRIMARY KEY (id))`,
    );
  }
  await database.query(statements.join('; '));
  for (const object of Object.values(world.objects)) {
    const fields = storedFields(object);
    const values: unknown[] = [];
    const tuples = world.rows[object.apiName]!.map((row) => {
      const cells = fields.map((field) => {
        values.push(storedValue(row[field.apiName] ?? null, field));
        return `$${values.length}::${fieldType(typeOf(field)).bindType}`;
      });
      return `(${cells.join(', ')})`;
    });
    if (tuples.length > 0)
      await database.query(
        `INSERT INTO ${quoted(schema)}.${quoted(object.apiName)} (${fields.map((field) => quoted(field.apiName)).join(', ')}) VALUES ${tuples.join(', ')}`,
        values,
      );
  }
}

/** Through the same door as a body of the API, except for what callers may not write. */
function storedValue(value: Value, field: FieldMeta): unknown {
  if (value === null) return null;
  const type = fieldType(typeOf(field));
  const input = typeOf(field) === 'dateTime' ? new Date(value as number).toISOString() : value;
  if (!type.writable) return input;
  const result = type.parseInput(input, field, `/${field.apiName}`);
  if (!result.ok) throw new Error(`${field.fieldType} refused ${JSON.stringify(input)}: ${result.violation.message}`);
  return result.value;
}

const RELATIVE = [
  'TODAY',
  'YESTERDAY',
  'TOMORROW',
  'THIS_WEEK',
  'LAST_WEEK',
  'THIS_MONTH',
  'LAST_MONTH',
  'THIS_QUARTER',
  'THIS_YEAR',
  'LAST_N_DAYS:1',
  'LAST_N_DAYS:400',
  'NEXT_N_DAYS:2',
];

/** A value to compare with: often one that is stored, so that something matches. */
function operandFor(g: Generate, field: FieldMeta, rows: readonly Row[]): unknown {
  const isDate = typeOf(field) === 'date' || typeOf(field) === 'dateTime';
  if (isDate && g(fc.boolean)) return pick(g, RELATIVE);
  const stored = rows.map((row) => row[field.apiName] ?? null).filter((value) => value !== null);
  const value = stored.length > 0 && g(fc.nat, { max: 3 }) > 0 ? pick(g, stored) : valueFor(g, field);
  if (typeOf(field) === 'dateTime') {
    const text = new Date(value as number).toISOString();
    return g(fc.boolean) ? text : new Date((value as number) + 5.5 * 3_600_000).toISOString().replace('Z', '+05:30');
  }
  const number = Number(value);
  if (field.scale !== null && String(number) === value && g(fc.boolean)) return number;
  return value;
}

function conditionFor(
  g: Generate,
  object: ObjectMeta,
  world: World,
  id: string,
  { nested = false, follows = false } = {},
): RawCondition {
  if (follows && g(fc.nat, { max: 3 }) === 0) {
    const { field, ...condition } = conditionFor(g, otherOf(object, world), world, id, { nested: true });
    return { ...condition, field: `Other__c.${field}` };
  }
  const fields = world.access.objects[object.apiName]!.readable.filter((field) => operatorsFor(field).length > 0);
  const field = pick(g, fields);
  const rows = world.rows[object.apiName]!;
  const operator = pick(
    g,
    operatorsFor(field).filter((name) => OPERATORS.includes(name) && !(nested && name === 'in_related')),
  );
  const operand = (): unknown => operandFor(g, field, rows);
  const list = (): unknown[] => Array.from({ length: g(fc.integer, { min: 1, max: 4 }) }, operand);
  switch (operator) {
    case 'is_blank':
    case 'is_not_blank':
      return { id, field: field.apiName, operator };
    case 'between':
      return { id, field: field.apiName, operator, value: operand(), valueTo: operand() };
    case 'in':
    case 'not_in': {
      const values = field.fieldType === 'multiPicklist' ? g(() => fc.subarray(OPTIONS, { minLength: 1 })) : list();
      return { id, field: field.apiName, operator, value: values };
    }
    case 'contains':
    case 'not_contains':
    case 'starts_with': {
      if (field.fieldType === 'multiPicklist') return { id, field: field.apiName, operator, value: pick(g, OPTIONS) };
      const text = String(operand());
      const from = operator === 'starts_with' ? 0 : g(fc.nat, { max: 2 });
      const value = [...text].slice(from, from + 2).join('');
      return { id, field: field.apiName, operator, value: g(fc.boolean) ? value.toUpperCase() : value };
    }
    case 'in_related': {
      const related = world.objects[object.apiName === 'Account' ? 'Order__c' : 'Account']!;
      const through = pick(
        g,
        world.access.objects[related.apiName]!.readable.filter((item) => operatorsFor(item).includes('in_related')),
      );
      const conditions = Array.from({ length: g(fc.nat, { max: 2 }) }, (_, index) =>
        conditionFor(g, related, world, `${id}.${index}`, { nested: true }),
      );
      const value: Record<string, unknown> = { objectApiName: related.apiName, field: through.apiName };
      if (conditions.length > 0) Object.assign(value, { logic: pick(g, ['and', 'or']), conditions });
      return { id, field: field.apiName, operator, value };
    }
    default:
      return { id, field: field.apiName, operator, value: operand() };
  }
}

const otherOf = (object: ObjectMeta, world: World): ObjectMeta =>
  world.objects[object.fields['Other__c']!.referenceTo[0]!]!;

/** A valid query on the object. `follows`: conditions may lead along a reference, as those of lists. */
export function randomQuery(g: Generate, object: ObjectMeta, world: World, { follows = true } = {}): RawQuery {
  const query: RawQuery = {};
  const { readable } = world.access.objects[object.apiName]!;
  const rows = world.rows[object.apiName]!;
  if (g(fc.nat, { max: 2 }) > 0)
    query.filters = {
      logic: pick(g, ['and', 'or']),
      conditions: Array.from({ length: g(fc.integer, { min: 1, max: 3 }) }, (_, index) =>
        conditionFor(g, object, world, `c${index}`, { follows }),
      ),
    };
  const comparable = readable.filter((field) => operatorsFor(field).includes('eq'));
  if (g(fc.nat, { max: 3 }) === 0) {
    const field = pick(g, comparable);
    query.where = { [field.apiName]: g(fc.nat, { max: 2 }) === 0 ? null : operandFor(g, field, rows) };
  }
  if (g(fc.nat, { max: 3 }) === 0) {
    const field = pick(
      g,
      comparable.filter((item) => item.fieldType !== 'multiPicklist' && operatorsFor(item).includes('in')),
    );
    query.whereIn = { [field.apiName]: [operandFor(g, field, rows), operandFor(g, field, rows)] };
  }
  const texts = readable.filter(searchable);
  if (g(fc.nat, { max: 3 }) === 0) {
    query.search = pick(g, ['ab', 'aé', 'Öz', 'a b', 'e1', 'ДА', 'да', 'ada example', '30']);
    const readableNames = new Set(texts.map((field) => field.apiName));
    query.searchFields = g(() => fc.subarray([...readableNames], { minLength: 1 }));
  }
  if (g(fc.nat, { max: 2 }) > 0) {
    const ofOther = world.access.objects[otherOf(object, world).apiName]!.readable.filter(sortable);
    const names = readable.filter(sortable).map((field) => field.apiName);
    if (g(fc.boolean)) names.push(...ofOther.map((field) => `Other__c.${field.apiName}`));
    const sorted = g(() => fc.shuffledSubarray(names, { minLength: 1, maxLength: 2 }));
    query.sort = sorted.map((name) => ({ id: name, desc: g(fc.boolean) }));
  }
  return query;
}
