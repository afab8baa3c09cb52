/**
 * Rollups over random formulas and records: the figures that triggers and deployments keep are those that evaluate()
 * gives, added up by hand. ROLLUP_SEED replays one run.
 */
import assert from 'node:assert/strict';
import { checkExpression, checkRecordExpression, RECORD_COST_MAX, recordCost } from '../../../lib/expression/check.ts';
import { evaluate, isFailure, recordFacts } from '../../../lib/expression/evaluate.ts';
import { withFormulas } from '../../../lib/expression/formulas.ts';
import { ExpressionError, type Schema, type Value } from '../../../lib/expression/types.ts';
import { schemaOfObject, typeOfField, valueOfField } from '../../../lib/expression/values.ts';
import type { FieldMeta, FieldTypeName, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { type Exact, exactText } from '../../../lib/values/decimal.ts';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { Snapshots } from '../../../services/metadata/snapshots.ts';
import { createTenant, deployTemplate } from '../../../services/metadata/tenants.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { FIELDS, Random, type Row, randomExpression, randomRow } from '../expression/world.ts';

const seed = Number(process.env['ROLLUP_SEED'] ?? Date.now() % 1_000_000_000);
const ROUNDS = 12;
const RECORDS = 24;

/** The formulas, by name: what they give. Each round says what they are anew. */
const FORMULAS: Readonly<Record<string, FieldTypeName>> = {
  Truth__c: 'boolean',
  Word__c: 'text',
  Number__c: 'decimal',
  Whole__c: 'integer',
  Money__c: 'currency',
  Date__c: 'date',
  Moment__c: 'dateTime',
};

/** The rollups over them, which no round touches. */
const ROLLUPS: Readonly<Record<string, readonly [fn: string, field: string | null, criteria: string | null]>> = {
  Sum__c: ['sum', 'Number__c', null],
  SumOfTrue__c: ['sum', 'Money__c', 'record.Truth__c'],
  Average__c: ['avg', 'Whole__c', null],
  WholeSum__c: ['sum', 'Whole__c', 'record.Money__c > 0 || record.Flag__c'],
  Least__c: ['min', 'Whole__c', 'record.Number__c < 100'],
  Most__c: ['max', 'Number__c', null],
  First__c: ['min', 'Date__c', 'record.Word__c != "a"'],
  Last__c: ['max', 'Moment__c', null],
  Count__c: ['count', null, 'record.Truth__c && !isBlank(record.Word__c)'],
};

const MORE: Readonly<Record<string, string>> = {
  text: 'length: 4000',
  longText: 'length: 131072',
  picklist: 'picklist:\n  restricted: false',
  multiPicklist: 'picklist:\n  restricted: false',
  reference: 'referenceTo:\n  - Parent__c\nrelationshipName: Children__r',
};
const DIGITS: Readonly<Record<string, string>> = { Exact: 'precision: 30\nscale: 15' };
const NAMES = Object.keys(FIELDS).filter((name) => name !== 'id');
const ZONE = 'Europe/Berlin';

const column = (name: string): string => `${name}__c`;
const inTenant = (source: string): string => source.replace(/record\.(?!id\b)([A-Z]\w*)/g, 'record.$1__c');

const PARENTS = [0, 1, 2].flatMap((a) => [0, 1, 2, 3].map((b) => `0000000${a}-0000-7000-8000-00000000000${b}`));
const NOBODY = '01939f6e-0000-7000-8000-000000000001';

describe(`rollups over formulas (ROLLUP_SEED=${seed})`, function () {
  this.timeout(120_000);
  const random = new Random(seed);
  let server: TestDatabase;
  let database: Database;
  let tenantId: string;
  let schema: string;
  let created = 0;
  const records = new Map<string, Row>();

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'rollup formula test' });
    await migrateServices(database, ['metadata']);
    const made = await createTenant(database, 'local', { key: 'figures', name: 'Figures', timezone: ZONE });
    tenantId = made.tenant.id;
    schema = `"t_${tenantId.replaceAll('-', '')}"`;
  });
  after(async () => {
    await database?.close();
    await server?.drop();
  });

  const stored = (): Record<string, string> => ({
    ...objectFiles('Parent__c'),
    ...objectFiles(
      'Child__c',
      Object.fromEntries(
        NAMES.map((name) => [column(name), `fieldType: ${FIELDS[name]}\n${DIGITS[name] ?? MORE[FIELDS[name]!] ?? ''}`]),
      ),
    ),
  });
  const rollups = (): Record<string, string> =>
    Object.assign(
      {},
      ...Object.entries(ROLLUPS).map(([name, [fn, field, criteria]]) =>
        fieldFile(
          'Parent__c',
          name,
          `fieldType: rollup\nrollup:\n  childObject: Child__c\n  referenceField: Ref__c\n  function: ${fn}\n${field ? `  field: ${field}\n` : ''}${criteria ? `  criteria: ${quoted(criteria)}\n` : ''}`,
        ),
      ),
    );

  /** Formulas that are new in what they say, and that together with the rollups cost no more than they may. */
  function formulas(): Record<string, string> {
    for (;;) {
      const files = affordable();
      if (files) return files;
    }
  }

  /** Some name those before them. */
  function affordable(): Record<string, string> | null {
    const costs = new Map<string, number>();
    const fields = new Map<string, FieldTypeName>(NAMES.map((name) => [column(name), FIELDS[name]!]));
    fields.set('id', 'id');
    const schemaOfChild: Schema = {
      object: 'Child__c',
      fieldType: (field) => fields.get(field),
      cost: (field) => costs.get(field) ?? 0,
    };
    const files: Record<string, string> = {};
    for (const [name, resultType] of Object.entries(FORMULAS)) {
      const type = typeOfField(resultType) as 'number' | 'text' | 'boolean' | 'date' | 'dateTime';
      for (;;) {
        const plain = inTenant(randomExpression(random, type, 1 + random.below(4)));
        if (/\b(?:now|today)\b/.test(plain)) continue;
        const expression = plain
          .replaceAll('record.Flag__c', () => (fields.has('Truth__c') ? 'record.Truth__c' : 'record.Flag__c'))
          .replaceAll('record.Count__c', () => (fields.has('Whole__c') ? 'record.Whole__c' : 'record.Count__c'));
        try {
          costs.set(name, recordCost(checkRecordExpression(expression, schemaOfChild, [type]), schemaOfChild));
        } catch (error) {
          if (error instanceof ExpressionError) continue;
          throw error;
        }
        const digits =
          resultType === 'currency' ? `precision: ${9 + random.below(12)}\nscale: ${random.below(6)}\n` : '';
        Object.assign(
          files,
          fieldFile(
            'Child__c',
            name,
            `fieldType: formula\n${digits}formula:\n  expression: ${quoted(expression)}\n  resultType: ${resultType}`,
          ),
        );
        break;
      }
      fields.set(name, resultType);
    }
    if ([...costs.values()].reduce((sum, cost) => sum + cost, 0) > 2 * RECORD_COST_MAX) return null;
    for (const [, , criteria] of Object.values(ROLLUPS))
      if (criteria) {
        const cost = recordCost(checkExpression(criteria, schemaOfChild, ['boolean']), schemaOfChild);
        if (cost > RECORD_COST_MAX) return null;
      }
    return files;
  }

  /** A row with values that the fields can hold. */
  const newRow = (): Row => {
    const row = randomRow(random);
    return { ...row, Sum: row['Amount'] };
  };

  async function insert(): Promise<void> {
    const row = newRow();
    const id = `00000000-0000-7000-9000-${String(created++).padStart(12, '0')}`;
    records.set(id, { ...row, id });
    await database.query({
      text: `INSERT INTO ${schema}."Child__c" (id, name, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", ${NAMES.map((name) => `"${column(name)}"`).join(', ')})
        VALUES ($1, 'x', $2, now(), $2, now(), $2, ${NAMES.map((_, i) => `$${i + 3}`).join(', ')})`,
      values: [id, NOBODY, ...NAMES.map((name) => row[name] as string | null)],
    });
  }

  async function change(): Promise<void> {
    const id = random.of([...records.keys()]);
    const old = records.get(id)!;
    if (records.size > RECORDS && random.chance(0.2)) {
      await database.query(`DELETE FROM ${schema}."Child__c" WHERE id = $1`, [id]);
      records.delete(id);
      return;
    }
    const name = random.of(NAMES);
    const value = newRow()[name];
    await database.query(`UPDATE ${schema}."Child__c" SET "${column(name)}" = $2 WHERE id = $1`, [id, value as string]);
    records.set(id, { ...old, [name]: value });
  }

  async function compare(when: string): Promise<number> {
    const { snapshot: bytes } = (await new Snapshots(database).get(tenantId))!;
    const snapshot = JSON.parse(bytes.toString()) as Snapshot;
    const child = snapshot.objects['Child__c']!;
    const parent = snapshot.objects['Parent__c']!;
    const { rows } = await database.query<Record<string, string | null>>(
      `SELECT id, ${Object.keys(ROLLUPS).map((name) => asText(parent.fields[name]!))} FROM ${schema}."Parent__c" ORDER BY id`,
    );
    assert.equal(rows.length, PARENTS.length);
    let figures = 0;
    for (const row of rows) {
      const children = [...records.values()].filter((record) => record['Ref'] === row['id']);
      for (const name of Object.keys(ROLLUPS)) {
        const expected = figureOf(parent.fields[name]!, child, children);
        if (expected !== null && expected !== '0') figures++;
        assert.equal(
          row[name],
          expected,
          `${when}: ${name} of ${children.length}\n${JSON.stringify(Object.keys(FORMULAS).map((field) => child.fields[field]!.formula!.expression))}`,
        );
      }
    }
    return figures;
  }

  it('match their formulas after any change of records and formulas', async () => {
    await deployTemplate(database, tenantId, stored());
    for (const id of PARENTS)
      await database.query(
        `INSERT INTO ${schema}."Parent__c" (id, name, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById") VALUES ($1, 'x', $2, now(), $2, now(), $2)`,
        [id, NOBODY],
      );
    for (let i = 0; i < RECORDS; i++) await insert();
    await deployTemplate(database, tenantId, { ...formulas(), ...rollups() });
    let figures = await compare('at first');
    for (let round = 0; round < ROUNDS; round++) {
      for (let i = 0; i < 4; i++) await insert();
      for (let i = 0; i < 40; i++) await change();
      figures += await compare(`after the changes of round ${round}`);
      await deployTemplate(database, tenantId, formulas());
      figures += await compare(`after the deployment of round ${round}`);
    }
    assert.ok(figures > 200, `only ${figures} figures were over something`);
  });
});

/** Text of YAML in double quotes; what YAML does not take as it is, JSON does not escape. */
const quoted = (text: string): string =>
  JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** SQL of a figure as text, in the form of `figureOf`. */
function asText({ apiName, rollup }: FieldMeta): string {
  const name = `"${apiName}"`;
  switch (rollup!.resultType) {
    case 'date':
      return `${name}::text AS ${name}`;
    case 'dateTime':
      return `(extract(epoch FROM ${name}) * 1000)::bigint::text AS ${name}`;
    default:
      return `trim_scale(${name}::numeric)::text AS ${name}`;
  }
}

/** Computes a rollup over the children of a parent. */
function figureOf(field: FieldMeta, child: ObjectMeta, children: readonly Row[]): string | null {
  const { function: fn, field: over, criteria } = field.rollup!;
  const at = { now: 0, timezone: ZONE };
  const values: Value[] = [];
  for (const row of children) {
    const read = withFormulas(child, (name) => storedValue(row, name), at);
    const holds = (): boolean => {
      try {
        return evaluate(checkExpression(criteria!, schemaOfObject(child), ['boolean']), recordFacts(read, at)) === true;
      } catch (error) {
        if (isFailure(error)) return false;
        throw error;
      }
    };
    if (criteria === null || holds()) values.push(over === null ? true : read(over));
  }
  if (fn === 'count') return String(values.length);
  const there = values.filter((value) => value !== null);
  if (fn === 'sum' || fn === 'avg') {
    const all = there as Exact[];
    const scale = Math.max(0, ...all.map((value) => value.scale));
    const sum = all.reduce((total, value) => total + value.units * 10n ** BigInt(scale - value.scale), 0n);
    if (fn === 'sum') return exactText({ units: sum, scale });
    if (all.length === 0) return null;
    return exactText(quotient(sum, scale, BigInt(all.length), field.scale!));
  }
  const sorted = there.map((value) => [orderOf(value), textOf(value)] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  return (fn === 'min' ? sorted[0] : sorted.at(-1))?.[1] ?? null;
}

const storedValue = (row: Row, name: string): Value => {
  const plain = name.replace(/__c$/, '');
  return valueOfField(FIELDS[plain]!, row[plain]);
};

/** `units` of `scale` divided and rounded half away from zero. */
function quotient(units: bigint, scale: number, by: bigint, digits: number): Exact {
  const wide = (units < 0n ? -units : units) * 10n ** BigInt(digits) * 2n;
  const unit = 10n ** BigInt(scale) * by;
  const rounded = (wide + unit) / (2n * unit);
  return { units: units < 0n ? -rounded : rounded, scale: digits };
}

function orderOf(value: NonNullable<Value>): bigint | string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && 'ms' in value) return BigInt(value.ms as number);
  const { units, scale } = value as Exact;
  return units * 10n ** BigInt(20 - scale);
}

function textOf(value: NonNullable<Value>): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && 'ms' in value) return String(value.ms);
  return exactText(value as Exact);
}
