/** Runs the plan's data checks on the records of the tenant and adds the problems that they find to the plan. */
import { identifier } from '../../lib/values/sql-text.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { componentKey, type State } from './kinds/component.ts';
import type { Problem } from './kinds/kind.ts';
import { tableOf } from './kinds/registry.ts';
import { blankSql, keyExpression } from './physical/model.ts';
import type { DataCheck } from './planner/data-checks.ts';
import type { Change, Plan } from './planner/plan.ts';

/** Records from which on a change of the table is worth a warning. */
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
      const key = keyExpression(question.field);
      return `SELECT coalesce(sum(n), 0) FROM (
          SELECT count(*) AS n FROM ${table} WHERE ${identifier(question.field.apiName)} IS NOT NULL
          GROUP BY ${key} HAVING count(*) > 1) AS same`;
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
    case 'noneOf':
      return `SELECT count(*) FROM ${table}
        WHERE (${identifier(question.field)} = ANY (${bind(question.values)}::text[])) IS NOT TRUE`;
  }
}

/** Existing objects whose tables or fields the plan changes. */
function existingObjects(plan: Plan, before: State): string[] {
  const names = new Set([...plan.creates, ...plan.updates].map(tableOf).filter((name) => name !== null));
  return [...names].filter((object) => before.has(componentKey('CustomObject', object))).sort();
}

/**
 * The plan with the problems and warnings that the data checks found and the number of records that each change concerns.
 * `schema` is quoted. All checks run as one statement.
 */
export async function runDataChecks(tx: Tx, schema: string, plan: Plan, before: State): Promise<Plan> {
  const objects = existingObjects(plan, before);
  if (objects.length === 0 && plan.dataChecks.length === 0) return plan;
  const { found, counts } = await countRecords(tx, schema, plan.dataChecks, objects);
  const problems = found.map(({ check, records }) => ({ problem: foundProblem(check, records), check }));
  const isWarning = ({ check }: { check: DataCheck }): boolean => check.code === 'STATE_MODEL_INVALID';
  const large = [...counts].filter(([, records]) => records >= LARGE_TABLE_RECORDS);
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
      ...large.map(([object, records]) => largeTable(object, records, before)),
    ],
    creates: plan.creates.map(withImpact),
    updates: plan.updates.map(withImpact),
  };
}

/** The checks that records violate, and how many records each object has. */
async function countRecords(
  tx: Tx,
  schema: string,
  checks: readonly DataCheck[],
  objects: readonly string[],
): Promise<{ found: { check: DataCheck; records: number }[]; counts: Map<string, number> }> {
  const values: unknown[] = [];
  const selects = [
    ...checks.map((check) => countSql(schema, check, values)),
    ...objects.map((object) => `SELECT count(*) FROM ${schema}.${identifier(object)}`),
  ];
  const { rows } = await tx.arrays({ text: `SELECT ${selects.map((sql) => `(${sql})::bigint`).join(', ')}`, values });
  const answers = (rows[0] ?? []).map(Number);
  return {
    found: checks.map((check, i) => ({ check, records: answers[i] ?? 0 })).filter(({ records }) => records > 0),
    counts: new Map(objects.map((object, i) => [object, answers[checks.length + i] ?? 0])),
  };
}

const foundProblem = (check: DataCheck, records: number): Problem => ({
  code: check.code,
  type: check.component.type,
  fullName: check.component.fullName,
  path: check.component.path,
  ...check.position,
  message: `${check.message} (${records} records)`,
  remedy: check.remedy,
  details: { records },
});

const largeTable = (object: string, records: number, before: State): Problem => ({
  code: 'LARGE_TABLE',
  type: 'CustomObject',
  fullName: object,
  path: before.get(componentKey('CustomObject', object))?.path ?? null,
  line: null,
  column: null,
  message: `The object has ${records} records; writes to it may wait while the change is applied.`,
  remedy: 'Deploy outside working hours.',
  details: { records },
});
