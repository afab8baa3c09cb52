/** The statement that changes a record at once. */
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { type Placeholders, within } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { claimKeySql } from '../../../mixins/mutation/key.sql.ts';
import { changesSql, columnName, columnType, outputOf, reachSql, storedFields, table } from '../sql.ts';
import { CLAIM_COLUMNS, type ClaimRow, freshSql, stateSql } from './checks.sql.ts';
import { differsSql } from './references.ts';
import { newTrailIds, trailSql } from './trail.ts';
import { answerSql, etagSql, keySql } from './update.sql.ts';
import { idOf, ifMatchOf, keyOf, userOf, valueAt } from './write.sql.ts';
import type { FieldValue, Write } from './write.ts';

/** A duplicate request that holds the key may be waiting for the record, which its holder releases soon. */
const KEY_PATIENCE_MS = 100;

/** Result of updateAtOnceSql. Nothing was changed unless `claimed`. */
export interface AtOnceRow extends ClaimRow {
  readonly body: string | null;
  readonly recordVersion: number | null;
}

/**
 * One statement in which locked and new_row are found only when everything the database decides allows the change, and
 * all else depends on new_row: the reply, the key, the change itself, its trail.
 */
export const updateAtOnceSql = (write: Write): Statement =>
  write.deps.templates.statement(write, shapeOf(write), (placeholders) => textOf(write, placeholders));

/** All that the text depends on beside the view; null: rare enough to be put together each time. */
function shapeOf({ unit, view, object, call, external, given }: Write): string | null {
  if (external || unit.key.part || unit.checkOnly) return null;
  const fields = given.map(({ field }) => field.apiName).join();
  return `update ${view.key} ${call.operationId} ${call.ieee754Compatible} ${object.apiName} ${fields}`;
}

function textOf(write: Write, placeholders: Placeholders<Write>): string {
  const { object, given, unit } = write;
  const { of } = placeholders;
  const records = table(unit.schema, object.apiName);
  const id = of(idOf, 'uuid');
  const user = of(userOf, 'uuid');
  const values = new Map(
    given.map(({ field }, index) => [field, `${of(valueAt(index), typeOf(field).bindType)}::${columnType(field)}`]),
  );
  const newValue = (field: FieldMeta): string => values.get(field) ?? `locked.${columnName(field)}`;
  const differs = ({ field }: FieldValue): string => differsSql(field, `locked.${columnName(field)}`, newValue(field));
  const sets = [
    ...given.map(({ field }) => `${columnName(field)} = ${newValue(field)}`),
    '"recordVersion" = "recordVersion" + 1',
    '"updatedAt" = statement_timestamp()',
    `"updatedById" = ${user}`,
  ];
  const outcome = { status: '200', headers: 'reply.headers', body: 'reply.body' };
  const claim = `FROM reply WHERE set_config('lock_timeout', '${KEY_PATIENCE_MS}', true) IS NOT NULL`;
  const key = within(placeholders, keyOf);
  const ctes = [
    stateSql(write),
    lockedSql(write, placeholders, id),
    `new_row AS MATERIALIZED (SELECT ${newColumns(write, values, user)}
      FROM locked WHERE ${given.map(differs).join(' OR ')})`,
    `reply AS MATERIALIZED (SELECT ${answerSql(write, 'new_row')}::text AS body,
        jsonb_build_object('ETag', ${etagSql('new_row')}) AS headers
      FROM new_row)`,
    `key_claim AS (${claimKeySql(unit.schema, unit.key, key.of, claim, outcome)})`,
    `updated AS (UPDATE ${records} SET ${sets.join(', ')} WHERE "id" = ${id} AND EXISTS (SELECT FROM key_claim))`,
    `change AS MATERIALIZED (SELECT new_row."id" AS record_id, new_row."recordVersion" AS record_version,
        0 AS position, ${newTrailIds(placeholders)}, ${changedSql(given, differs)} AS changes
      FROM locked, new_row WHERE EXISTS (SELECT FROM key_claim))`,
    ...trailSql(write, placeholders, object, { kind: 'update', from: 'change', transactionSize: 1 }),
  ];
  return `WITH ${ctes.join(',\n')}
    SELECT ${CLAIM_COLUMNS}, (SELECT body FROM reply) AS body,
      (SELECT "recordVersion" FROM new_row) AS "recordVersion"
    FROM state`;
}

/** The record, when the caller may change it in this version. A locked row is left to update.ts. */
function lockedSql(write: Write, { of, constant }: Placeholders<Write>, id: string): string {
  const { view, object, ifMatch, external, unit } = write;
  const bound = { bind: constant };
  const conditions = (['read', 'edit'] as const).map((level) => reachSql(view, bound, object.apiName, level, 't'));
  if (!external || ifMatch.length > 0) conditions.push(`${etagSql('t')} = ANY(${of(ifMatchOf, 'text[]')})`);
  return `locked AS MATERIALIZED (SELECT * FROM ${table(unit.schema, object.apiName)} t
    WHERE t."id" = ${id}${keySql(write, bound)}
      AND EXISTS (SELECT FROM state WHERE ${freshSql(write, bound)}) AND ${conditions.join(' AND ')}
    FOR NO KEY UPDATE SKIP LOCKED)`;
}

const unchangedColumn = memoize((field: FieldMeta): string => `locked.${columnName(field)} AS ${columnName(field)}`);

/** The columns of the record in its new version. */
function newColumns({ object }: Write, values: ReadonlyMap<FieldMeta, string>, user: string): string {
  const ofSystem = new Map([
    ['recordVersion', '(locked."recordVersion" + 1)'],
    ['updatedAt', 'statement_timestamp()::timestamptz(3)'],
    ['updatedById', user],
  ]);
  const after = (field: FieldMeta): string => {
    const value = ofSystem.get(field.apiName) ?? values.get(field);
    return value === undefined ? unchangedColumn(field) : `${value} AS ${columnName(field)}`;
  };
  return storedFields(object).map(after).join(', ');
}

/** jsonb of the fields whose values differ, for trailSql. */
const changedSql = (given: readonly FieldValue[], differs: (item: FieldValue) => string): string =>
  given
    .map((item) => {
      const changes = changesSql(
        [item.field],
        (field) => outputOf('locked', field),
        (field) => outputOf('new_row', field),
      );
      return `CASE WHEN ${differs(item)} THEN ${changes} ELSE '{}' END`;
    })
    .join(' || ');
