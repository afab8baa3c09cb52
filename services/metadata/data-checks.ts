/**
 * Runs the questions that planner/data-checks.ts has found in a plan: their SQL, one statement for all, and the
 * problems and warnings that the numbers stand for. Only this file needs a database.
 */
import { identifier, literal } from '../../lib/values/sql-text.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { tellRecords } from './counts.ts';
import { CUSTOM_FIELD } from './kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './kinds/bodies/custom-object.ts';
import { type Component, componentKey, isOf, type State } from './kinds/component.ts';
import type { Problem } from './kinds/kind.ts';
import { tableOf } from './kinds/registry.ts';
import { aheadIndexName } from './physical/ahead.ts';
import { blankSql, keyExpression, uniqueIndex } from './physical/model.ts';
import type { DataCheck } from './planner/data-checks.ts';
import { longWork } from './planner/long-work.ts';
import type { Change, Plan, PlanLists } from './planner/plan.ts';

/** Records from which on it is worth a warning that something is done to all of them. */
const LARGE_TABLE_RECORDS = 100_000;

function countSql(schema: string, check: DataCheck, values: unknown[]): string {
  const table = `${schema}.${identifier(check.object)}`;
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { question } = check;
  switch (question.kind) {
    case 'anyRecord':
      return `SELECT count(*) FROM ${table}`;
    case 'blank':
      return `SELECT count(*) FROM ${table} WHERE ${blankSql(question.field)}`;
    case 'duplicates': {
      const { name, ...index } = uniqueIndex(check.object, question.field);
      const ahead = `${schema}.${identifier(aheadIndexName(check.object, name, index))}`;
      // An existing index already guarantees it.
      return `SELECT CASE
          WHEN EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(${literal(ahead)}) AND indisvalid) THEN 0
          ELSE (SELECT coalesce(sum(n), 0) FROM (
            SELECT count(*) AS n FROM ${table} WHERE ${identifier(question.field.apiName)} IS NOT NULL
            GROUP BY ${index.on} HAVING count(*) > 1) AS same) END`;
    }
    case 'orphans': {
      const column = identifier(question.field);
      return `SELECT count(*) FROM ${table} x
        WHERE NOT EXISTS (SELECT FROM ${schema}.${identifier(question.target)} p WHERE p.id = x.${column})`;
    }
    case 'filled':
      return `SELECT count(*) FROM ${table} WHERE ${identifier(question.field)} IS NOT NULL`;
    case 'emptied':
      return `SELECT count(*) FROM (SELECT ${question.values} AS ${identifier(question.field.apiName)} FROM ${table}) x
        WHERE ${blankSql(question.field)}`;
    case 'alike': {
      const { field, values: altered } = question;
      const column = identifier(field.apiName);
      return `SELECT coalesce(sum(n), 0) FROM (
          SELECT count(*) AS n FROM (SELECT ${altered} AS ${column} FROM ${table}) x WHERE ${column} IS NOT NULL
          GROUP BY ${keyExpression(field)} HAVING count(*) > 1) AS same`;
    }
    case 'longerThan':
      return `SELECT count(*) FROM ${table}
        WHERE char_length(${identifier(question.field)}) > ${bind(question.length)}::integer`;
    case 'notFitting': {
      const column = identifier(question.field);
      return `SELECT count(*) FROM ${table}
        WHERE round(${column}, ${question.scale}) <> ${column}
          OR abs(${column}) >= 1e${question.precision - question.scale}`;
    }
    case 'tooGreat': {
      const { child, referenceField, aggregate, precision, scale } = question;
      const parent = `c.${identifier(referenceField)}`;
      return `SELECT count(*) FROM (
          SELECT round(${aggregate}, ${scale}) AS figure FROM ${schema}.${identifier(child)} c
          WHERE ${parent} IS NOT NULL GROUP BY ${parent}) AS figures
        WHERE abs(figure) >= 1e${precision - scale}`;
    }
    case 'anyOf': {
      const among = question.list ? '&&' : '= ANY';
      return `SELECT count(*) FROM ${table}
        WHERE ${identifier(question.field)} ${among} (${bind(question.values)}::text[])`;
    }
    case 'outside': {
      const taken = question.list ? '<@' : '= ANY';
      return `SELECT count(*) FROM ${table}
        WHERE NOT ${identifier(question.field)} ${taken} (${bind(question.values)}::text[])`;
    }
    case 'keptRecords':
      return `SELECT (SELECT count(*) FROM ${table})
        + (SELECT count(*) FROM ${schema}._recycle_bin WHERE object = ${bind(check.object)}::text)`;
    case 'keptValues': {
      const column = identifier(question.field);
      const held = question.list ? `cardinality(${column}) > 0` : `${column} IS NOT NULL`;
      return `SELECT (SELECT count(*) FROM ${table} WHERE ${held})
        + (SELECT count(*) FROM ${schema}._recycle_bin WHERE object = ${bind(check.object)}::text
          AND coalesce(record -> ${bind(question.field)}::text, 'null') NOT IN ('null', '[]'))`;
    }
    case 'noneOf':
      return `SELECT count(*) FROM ${table}
        WHERE (${identifier(question.field)} = ANY (${bind(question.values)}::text[])) IS NOT TRUE`;
  }
}

/** Existing objects whose tables or fields the plan changes. */
function existingObjects(plan: Plan, before: State): string[] {
  const names = new Set(
    [...plan.creates, ...plan.updates, ...plan.deletes].map(tableOf).filter((name) => name !== null),
  );
  return [...names].filter((object) => before.has(componentKey('CustomObject', object)));
}

/** A plan's checks of records as one statement, whose single row has a number per check and per object. */
export interface Counting {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Interpretation of the numbers of a `Counting`; plain values that can pass between threads. */
export interface Counted {
  readonly checks: readonly Omit<DataCheck, 'component' | 'question'>[];
  readonly found: readonly Pick<Problem, 'type' | 'fullName' | 'path'>[];
  readonly objects: readonly {
    readonly apiName: string;
    readonly path: string | null;
    /** Work on its records while writers wait. */
    readonly work: readonly string[];
  }[];
  /** Keys of the deleted components with which records or values are lost. */
  readonly losing: readonly string[];
}

/**
 * The statement, and what its numbers mean; null: the plan asks nothing. `deciding`: the first of the numbers, which
 * decide about the plan; the others only say how much there is. `schema` is quoted.
 */
export function countingOf(
  schema: string,
  plan: Plan,
  before: State,
): { statement: Counting; deciding: Counting | null; counted: Counted } | null {
  const work = longWork(plan, before);
  const objects = [...new Set([...existingObjects(plan, before), ...work.keys()])].sort();
  if (objects.length === 0 && plan.dataChecks.length === 0) return null;
  const values: unknown[] = [];
  const checks = plan.dataChecks.map((check) => countSql(schema, check, values));
  const all = [...checks, ...objects.map((object) => `SELECT count(*) FROM ${schema}.${identifier(object)}`)];
  const together = (selects: readonly string[]): Counting => ({
    text: `SELECT ARRAY[${selects.map((sql) => `(${sql})::bigint`).join(', ')}] AS numbers`,
    values,
  });
  return {
    statement: together(all),
    deciding: checks.length > 0 ? together(checks) : null,
    counted: {
      checks: plan.dataChecks.map(({ component: _component, question: _question, ...check }) => check),
      found: plan.dataChecks.map(({ component: { type, fullName, path } }) => ({ type, fullName, path })),
      objects: objects.map((apiName) => ({
        apiName,
        path: before.get(componentKey('CustomObject', apiName))?.path ?? null,
        work: work.get(apiName) ?? [],
      })),
      losing: plan.deleted.filter(holdsValues).map(({ type, fullName }) => componentKey(type, fullName)),
    },
  };
}

/** The numbers that a statement of `countingOf` gives. */
export async function count(tx: Tx, statement: Counting): Promise<number[]> {
  const { numbers } = await tx.one<{ numbers: readonly string[] }>(statement);
  return numbers.map(Number);
}

/**
 * A plan with the problems and warnings that the numbers stand for, and the number of records that each change
 * concerns.
 */
export function withCounts<P extends PlanLists>(
  plan: P,
  { checks, found, objects, losing }: Counted,
  numbers: readonly number[],
): P {
  const problems = checks.flatMap((check, i) => {
    const [records = 0, where] = [numbers[i], found[i]];
    return records > 0 && where ? [{ problem: foundProblem(check, where, records), check }] : [];
  });
  const counts = new Map(objects.map(({ apiName }, i) => [apiName, numbers[checks.length + i] ?? 0]));
  const isWarning = ({ check }: { check: Pick<DataCheck, 'code'> }): boolean => check.code === 'STATE_MODEL_INVALID';
  const lost = new Set(losing);
  const withImpact = (change: Change): Change => {
    const records = counts.get(tableOf(change) ?? '');
    return records === undefined ? change : { ...change, impact: { ...change.impact, records } };
  };
  return {
    ...plan,
    blocked: [...plan.blocked, ...problems.filter((one) => !isWarning(one)).map(({ problem }) => problem)],
    warnings: [
      ...plan.warnings,
      ...problems.filter(isWarning).map(({ problem }) => problem),
      ...objects.flatMap(({ apiName, path, work }) => {
        const records = counts.get(apiName) ?? 0;
        return work.length > 0 && records >= LARGE_TABLE_RECORDS ? [largeTable(apiName, records, path, work)] : [];
      }),
    ],
    creates: plan.creates.map(withImpact),
    updates: plan.updates.map(withImpact),
    deletes: plan.deletes.map((change) =>
      lost.has(componentKey(change.type, change.fullName)) ? withImpact(change) : change,
    ),
  };
}

/** True when deleting a component loses records or values; computed values can be computed again. */
const holdsValues = (component: Component): boolean =>
  isOf(component, CUSTOM_OBJECT) ||
  (isOf(component, CUSTOM_FIELD) && component.body.formula === undefined && component.body.rollup === undefined);

/** The plan with what the records say to it; all checks run as one statement. `schema` is quoted. */
export async function runDataChecks(tx: Tx, schema: string, plan: Plan, before: State): Promise<Plan> {
  const asked = countingOf(schema, plan, before);
  return asked ? withCounts(plan, asked.counted, await count(tx, asked.statement)) : plan;
}

function foundProblem(check: Counted['checks'][number], where: Counted['found'][number], records: number): Problem {
  const { message, details } = tellRecords((some) => `${check.message} (${some})`, records);
  return {
    code: check.code,
    ...where,
    ...check.position,
    message,
    remedy: check.remedy,
    details: { ...check.details, ...details },
  };
}

/** Things to say of one object; a plan may change hundreds of its fields. */
const WORK_SHOWN_MAX = 10;

const largeTable = (object: string, records: number, path: string | null, work: readonly string[]): Problem => ({
  code: 'LARGE_TABLE',
  type: 'CustomObject',
  fullName: object,
  path,
  line: null,
  column: null,
  remedy: 'Deploy outside working hours.',
  ...tellRecords(
    (some) => `The object has ${some}; writes wait while ${work.slice(0, WORK_SHOWN_MAX).join(', and while ')}.`,
    records,
  ),
});
