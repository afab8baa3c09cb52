/**
 * Random expressions over random records: what PostgreSQL makes of the compiled expression is what evaluate() gives.
 * EXPRESSION_COUNT sets how many are tried, EXPRESSION_SEED replays one run.
 */
import assert from 'node:assert/strict';
import { checkExpression, checkRecordExpression, RECORD_COST_MAX } from '../../../lib/expression/check.ts';
import { evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { columnSql, withFormulas } from '../../../lib/expression/formulas.ts';
import { EvaluationError } from '../../../lib/expression/functions.ts';
import { conditionSql, expressionSql, type SqlContext } from '../../../lib/expression/sql.ts';
import { type Expression, ExpressionError, type Type, type Value } from '../../../lib/expression/types.ts';
import { typeOfField, valueOfField } from '../../../lib/expression/values.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { exactOf, exactText } from '../../../lib/values/decimal.ts';
import { Database } from '../../../mixins/database/database.ts';
import { compileFormula, linkFormulas } from '../../../services/metadata/kinds/compile-formula.ts';
import { createDatabase, migrateMetadata, type TestDatabase } from '../../support/database.ts';
import { aField, anObject } from '../../support/snapshots.ts';
import { COLUMNS, FIELDS, Random, type Row, randomExpression, randomRow } from './world.ts';

const COUNT = Number(process.env['EXPRESSION_COUNT'] ?? 2_010);
const seed = Number(process.env['EXPRESSION_SEED'] ?? Date.now() % 1_000_000_000);
const BATCH = 30;
const ROWS = 16;
const TYPES = [
  'boolean',
  'boolean',
  'boolean',
  'number',
  'number',
  'text',
  'text',
  'date',
  'dateTime',
  'time',
  'list',
  'numbers',
] as const;
const ANY: Type[] = [
  'boolean',
  'number',
  'text',
  'date',
  'dateTime',
  'time',
  'list:text',
  'list:number',
  'list:null',
  'null',
];
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/Sao_Paulo',
  'Asia/Kolkata',
  'Pacific/Apia',
  'Australia/Lord_Howe',
  'America/St_Johns',
];
const NOWS = ['2026-11-21T12:00:00.123Z', '2026-03-29T00:30:00.000Z', '2024-02-29T23:59:59.999Z'];

const schema = { object: 'Thing', fieldType: (name: string) => FIELDS[name] };
const contextOf = (timezone: string, now: string): SqlContext => ({
  column: (name) => `r."${name}"`,
  fieldType: (name) => FIELDS[name]!,
  timezone,
  now: `'${now}'::timestamptz`,
});

interface Try {
  readonly source: string;
  readonly expression: Expression;
}

describe(`expressions in SQL against evaluate() (EXPRESSION_SEED=${seed})`, function () {
  this.timeout(600_000);
  let server: TestDatabase;
  let database: Database;

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 1, applicationName: 'expression test' });
    await migrateMetadata(database);
    const columns = Object.entries(COLUMNS).map(([name, type]) => `"${name}" ${type}`);
    await database.query(`CREATE TABLE things (n integer, ${columns.join(', ')})`);
  });
  after(async () => {
    await database.close();
    await server.drop();
  });

  async function store(rows: readonly Row[]): Promise<void> {
    await database.query('TRUNCATE things');
    const names = Object.keys(COLUMNS);
    for (const [n, row] of rows.entries())
      await database.query({
        text: `INSERT INTO things (n, ${names.map((name) => `"${name}"`).join(', ')}) VALUES (${n}, ${names.map((_, i) => `$${i + 1}`).join(', ')})`,
        values: names.map((name) => row[name]) as (string | null)[],
      });
  }

  /** One row per record; each expression as text in the form of `shown`. */
  async function query(columns: readonly string[]): Promise<(string | null)[][]> {
    const { rows } = await database.pool.query({
      text: `SELECT ${columns.join(',\n')} FROM things r ORDER BY r.n`,
      rowMode: 'array',
    });
    return rows as (string | null)[][];
  }

  async function compare(tries: readonly Try[], rows: readonly Row[], timezone: string, now: string): Promise<number> {
    const context = contextOf(timezone, now);
    const columns = tries.flatMap(({ expression }) => {
      const { sql } = expressionSql(expression, context);
      const condition = expression.type === 'boolean' ? conditionSql(expression, context).sql : 'NULL';
      return [textOf(sql, expression.type), `(${condition})::text`];
    });
    const found = await query(columns).catch(async (error) => {
      for (const [index, { source }] of tries.entries())
        await query(columns.slice(2 * index, 2 * index + 2)).catch((cause: Error) => {
          assert.fail(`${source}\nraises ${cause.message}\n${columns[2 * index]}`);
        });
      throw error;
    });
    let compared = 0;
    for (const [n, row] of rows.entries())
      for (const [index, { source, expression }] of tries.entries()) {
        const expected = evaluated(expression, row, timezone, now);
        if (expected === undefined) continue;
        compared++;
        const [actual, holds] = [found[n]![2 * index]!, found[n]![2 * index + 1]!];
        const got = actual === null ? null : plain(actual, expression.type);
        const about = (): string =>
          `${source}\n${timezone} ${now}\n${JSON.stringify(Object.fromEntries(expression.fields.map((name) => [name, row[name]])))}\n${columns[2 * index]}`;
        if (got !== expected) assert.equal(got, expected, about());
        if (expression.type === 'boolean' && (holds === 'true') !== (expected === 'true'))
          assert.equal(holds, expected, `as a condition ${columns[2 * index + 1]}\n${about()}`);
      }
    return compared;
  }

  it(`agree on ${COUNT} expressions`, async () => {
    const random = new Random(seed);
    let [compared, failing] = [0, 0];
    for (let done = 0; done < COUNT; done += BATCH) {
      const rows = Array.from({ length: ROWS }, () => randomRow(random));
      await store(rows);
      const tries: Try[] = [];
      while (tries.length < BATCH) {
        const source = randomExpression(random, random.of(TYPES), 1 + random.below(6));
        try {
          tries.push({ source, expression: checkExpression(source, schema, ANY) });
        } catch (error) {
          if (!(error instanceof ExpressionError)) throw error;
          failing++;
          assert.match(
            error.message,
            /longer than|choice is between|not looked for|takes no|takes \(|cannot be compared|values of one type|holds no|nests deeper/,
            source,
          );
        }
      }
      compared += await compare(tries, rows, random.of(ZONES), random.of(NOWS));
    }
    assert.ok(compared > 0.9 * COUNT * ROWS, `only ${compared} values were compared`);
    assert.ok(failing < COUNT, `${failing} expressions were no expressions`);
  });

  it('convert case alike for every letter', async () => {
    // All that have one, and some that have none.
    const letters: string[] = [];
    for (let code = 33; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const letter = String.fromCodePoint(code);
      if (letter.toLowerCase() !== letter || letter.toUpperCase() !== letter || code % 97 === 0) letters.push(letter);
    }
    const { rows } = await database.pool.query<{ lower: string[]; upper: string[] }>(
      `SELECT array_agg(erp.expr_lower(c) ORDER BY n) AS lower, array_agg(erp.expr_upper(c) ORDER BY n) AS upper
       FROM unnest($1::text[]) WITH ORDINALITY AS l(c, n)`,
      [letters],
    );
    for (const how of ['lower', 'upper'] as const) {
      const expression = checkExpression(`record.Name.${how}()`, schema, ['text']);
      const expected = letters.map((letter) => evaluate(expression, { ...NO_FACTS, record: () => letter }, () => 0));
      assert.deepEqual(rows[0]![how], expected);
    }
    // Beside each other, where old and new letters meet and one becomes several.
    const text = letters.join('');
    const whole = await database.pool.query<{ lower: string; upper: string }>(
      'SELECT erp.expr_lower($1) AS lower, erp.expr_upper($1) AS upper',
      [text],
    );
    assert.equal(whole.rows[0]!.upper, text.toUpperCase());
    assert.equal(whole.rows[0]!.lower, text.replaceAll('Σ', 'σ').toLowerCase());
  });

  it('treat a time zone unknown to the database as UTC', async () => {
    await store([{ ...randomRow(new Random(1)), At: '2026-11-21T23:30:00.000Z' }]);
    const expression = checkExpression('date(record.At)', schema, ['date']);
    const dayIn = async (zone: string): Promise<unknown> =>
      (await query([`(${expressionSql(expression, contextOf(zone, NOWS[0]!)).sql})::text`]))[0]![0];
    assert.equal(await dayIn('Europe/Berlin'), '2026-11-22');
    assert.equal(await dayIn('Mars/Olympus'), '2026-11-21');
    await query([expressionSql(checkExpression('today', schema, ['date']), contextOf('Mars/Olympus', NOWS[0]!)).sql]);
  });

  it('mistake no field value for a failure', async () => {
    const texts = ['\uffff', '\uFFFFfailed', '\u{10ffff}', '\u0958'.normalize('NFC'), 'NaN', 'infinity'];
    await store(texts.map((text) => ({ ...randomRow(new Random(1)), Name: text, Tags: [text] })));
    const sqlOf = (source: string): string =>
      expressionSql(checkExpression(source, schema, ['text', 'boolean']), contextOf('UTC', NOWS[0]!)).sql;
    const found = await query([
      sqlOf('record.Name.substring(0)'),
      `(${sqlOf('record.Tags.filter(x, x.substring(0) != "a").exists(x, x == record.Name)')})::text`,
    ]);
    assert.deepEqual(
      found,
      texts.map((text) => [text, 'true']),
    );
  });

  it('do not stall the database at any nesting depth', async () => {
    await store([randomRow(new Random(1))]);
    const list = (test: string): string =>
      Array.from({ length: 60 }, (_, i) => i).reduceRight(
        (inner, i) => `["a"].${i % 2 ? 'all' : 'exists'}(i${i}, ${inner})`,
        test,
      );
    const sources = [
      list('record.Count > 1'),
      list('1 / record.Count > 1'),
      `size(["a"]${'.filter(i0, 1 / record.Count > 1)'.repeat(40)}) > 0`,
      `${'abs('.repeat(190)}record.Count${')'.repeat(190)} > 0`,
      `record.Exact${' / record.Exact'.repeat(180)} > 0`,
      `${'(record.Flag ? '.repeat(90)}record.Count${' : 0)'.repeat(90)} > 1`,
      'record.Status.matches("(a?){90}")',
      'record.Status.matches("((x|)(y|)){20}")',
      'record.Status.matches("[^a]{180}")',
    ];
    const began = performance.now();
    for (const source of sources) {
      const expression = checkRecordExpression(source, schema, ['boolean']);
      await query([expressionSql(expression, contextOf('UTC', NOWS[0]!)).sql]);
    }
    assert.ok(performance.now() - began < 10_000);
  });

  it('stay within the time of their cost for hostile texts', async () => {
    const chains: [string, (inner: string) => string][] = [
      ['upper and lower', (inner) => `${inner}.upper().lower()`],
      ['contains', (inner) => `(${inner}.contains("b" + ${inner}) ? "a" : record.Name)`],
      ['replace', (inner) => `${inner}.replace("b" + record.Name, "c")`],
      ['trim', (inner) => `(" " + ${inner} + " ").trim()`],
      ['substring', (inner) => `${inner}.substring(1, 100000)`],
    ];
    // Letters that are long in UTF-8, become three in upper case, or are younger than the database.
    for (const letters of ['a', '\u{10000}', '\u0390', '\u0390\ua7b9'])
      for (const [about, grow] of chains)
        for (const length of [250, 2_000, 4_000]) {
          let accepted: Expression | null = null;
          let source = 'record.Name';
          for (let depth = 0; depth < 40 && source.length < 3_000; depth++)
            try {
              source = grow(source);
              accepted = checkRecordExpression(source, { ...schema, length: () => length }, ['text']);
            } catch (error) {
              if (!(error instanceof ExpressionError)) throw error;
              break;
            }
          if (accepted === null) continue;
          const context = { ...contextOf('UTC', NOWS[0]!), column: () => 'v.t', length: () => length };
          const { sql } = expressionSql(accepted, context);
          const took: number[] = [];
          for (let i = 0; i < 3; i++) {
            const began = performance.now();
            await database.pool.query(
              `SELECT count(${sql}) FROM (SELECT left(repeat($1, ${length}), ${length}) AS t FROM generate_series(1, 10) OFFSET 0) v`,
              [letters],
            );
            took.push((performance.now() - began) / 10);
          }
          const best = Math.min(...took);
          // A unit is a microsecond at worst; the rest is for a machine that has other things to do.
          const mostMs = (4 * RECORD_COST_MAX) / 1_000;
          assert.ok(
            best < mostMs,
            `${about} of ${length} ${letters}: ${best.toFixed(1)} ms for ${sql.length} characters`,
          );
        }
  });

  it('agree on formulas over formulas, in the form of their fields', async () => {
    const random = new Random(seed + 1);
    const results = ['text', 'integer', 'decimal', 'boolean', 'date', 'dateTime'] as const;
    let compared = 0;
    for (let round = 0; round < 25; round++) {
      const rows = Array.from({ length: ROWS }, () => randomRow(random));
      await store(rows);
      const timezone = random.of(ZONES);
      const object = { ...anObject('Thing'), fields: { ...stored() } };
      const names: string[] = [];
      while (names.length < 8) {
        const resultType = random.of(results);
        const wanted = resultType === 'integer' || resultType === 'decimal' ? 'number' : resultType;
        const name = `F${names.length}`;
        // Formulas that were made before take the place of some fields.
        const expression = randomExpression(random, wanted, 1 + random.below(4))
          .replaceAll('record.Sum', () => `record.${earlier(names, object.fields, 'number') ?? 'Sum'}`)
          .replaceAll('record.Name', () => `record.${earlier(names, object.fields, 'text') ?? 'Name'}`)
          .replaceAll('record.Flag', () => `record.${earlier(names, object.fields, 'boolean') ?? 'Flag'}`)
          .replaceAll('record.Day', () => `record.${earlier(names, object.fields, 'date') ?? 'Day'}`);
        if (/\b(?:now|today)\b/.test(expression)) continue;
        const body = { formula: { expression, resultType }, ...(random.chance(0.5) ? { precision: 9, scale: 3 } : {}) };
        const field = aField(name, 'formula', compileFormula(body));
        try {
          checkRecordExpression(expression, fieldsSchema({ ...object.fields, [name]: field }), [
            typeOfField(resultType)!,
          ]);
        } catch (error) {
          if (error instanceof ExpressionError) continue;
          throw error;
        }
        object.fields[name] = field;
        names.push(name);
      }
      linkFormulas(object, timezone);
      const found = await query(
        names.map((name) => {
          const field = object.fields[name]!;
          return textOf(columnSql(field, 'r'), typeOfField(valueTypeName(field))!);
        }),
      );
      for (const [n, row] of rows.entries()) {
        const value = (name: string): Value => valueOfField(FIELDS[name]!, row[name]);
        const read = withFormulas(object, value, { now: 0, timezone });
        for (const [index, name] of names.entries()) {
          const { expression, resultType } = object.fields[name]!.formula!;
          const actual = found[n]![index]!;
          const number = resultType === 'integer' || resultType === 'decimal';
          compared++;
          assert.equal(
            actual === null ? null : plain(actual, number ? 'number' : 'text'),
            shown(read(name)),
            `${resultType} ${expression}\n${JSON.stringify(row)}`,
          );
        }
      }
    }
    assert.equal(compared, 25 * 8 * ROWS);
  });
});

const stored = (): Record<string, FieldMeta> =>
  Object.fromEntries(Object.entries(FIELDS).map(([name, fieldType]) => [name, aField(name, fieldType)]));

const fieldsSchema = (fields: Readonly<Record<string, FieldMeta>>) => ({
  object: 'Thing',
  fieldType: (name: string) => fields[name] && valueTypeName(fields[name]),
  length: (name: string) => fields[name]?.length ?? null,
});

/** The last formula before that gives a type. */
const earlier = (
  names: readonly string[],
  fields: Readonly<Record<string, FieldMeta>>,
  type: Type,
): string | undefined => names.findLast((name) => typeOfField(valueTypeName(fields[name]!)) === type);

/** SQL of a value as text, in the form of `shown`. */
function textOf(sql: string, type: Type): string {
  if (type === 'dateTime') return `(extract(epoch FROM ${sql}) * 1000)::bigint::text`;
  if (type === 'list:number') return `array_to_json((${sql})::numeric[])::text`;
  return type.startsWith('list:') ? `array_to_json(${sql})::text` : `(${sql})::text`;
}

/** Numbers without the zeros that a column's type adds. */
const plain = (text: string, type: Type): string =>
  type === 'number' || type === 'list:number'
    ? text.replace(/-?\d+(?:\.\d+)?/g, (digits) => exactText(exactOf(digits)!))
    : text;

const NO_FACTS: Facts = {
  record: () => null,
  old: null,
  isChanged: () => false,
  user: {},
  hasPermission: () => false,
  inGroup: () => false,
  now: 0,
  timezone: 'UTC',
};

/** Undefined: it costs too much, of which SQL knows nothing. */
function evaluated(expression: Expression, row: Row, timezone: string, now: string): string | null | undefined {
  const facts: Facts = {
    ...NO_FACTS,
    record: (name) => valueOfField(FIELDS[name]!, row[name]),
    now: Date.parse(now),
    timezone,
  };
  try {
    return shown(evaluate(expression, facts, () => 0));
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return error.reason === 'COST_EXCEEDED' ? undefined : null;
  }
}

function shown(value: Value): string | null {
  if (value === null || typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (Array.isArray(value))
    return `[${value.map((item) => (typeof item === 'string' ? JSON.stringify(item) : shown(item))).join(',')}]`;
  if ('ms' in value) return String(value.ms);
  return exactText(value as Parameters<typeof exactText>[0]);
}
