/** The statement that creates a record, with everything that belongs to it. */
import { READ_RECORD } from '../../../contracts/data/records.ts';
import { addressOf } from '../../../contracts/operations.ts';
import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { isNumbered, typeOf } from '../../../lib/schema/field-types/registry.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { SetSql } from '../../../mixins/database/set-sql.ts';
import { type Placeholders, within } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { claimableSql, claimKeySql } from '../../../mixins/mutation/key.sql.ts';
import { changesSql, columnName, columnType, etagOf, outputOf, recordJson, storedFields, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions } from '../view.ts';
import { CLAIM_COLUMNS, type ClaimRow, freshSql, stateSql } from './checks.sql.ts';
import { confirmedSql } from './duplicates.sql.ts';
import { foundSql, referencesSql } from './references.ts';
import { actorSql, parentLocksSql } from './rollups.ts';
import { deniedParentsSql } from './sharing.ts';
import { standardObject, storeStandardSql } from './standard-objects.ts';
import { newTrailIds, randomTrailIds, trailSql } from './trail.ts';
import { idOf, itemAt, keyOf, userOf, valueAt } from './write.sql.ts';
import type { ResolvedReferences, Write } from './write.ts';

export const newRecordHeaders = ({ object, id }: Write): { ETag: string; Location: string } => ({
  ETag: etagOf(1),
  Location: addressOf(READ_RECORD, { objectApiName: object.apiName, id }),
});

const headersOf = (write: Write): string => JSON.stringify(newRecordHeaders(write));

/** Result of insertSql. Nothing was written unless `claimed`. */
export interface InsertRow extends ClaimRow {
  /** JSON of the record; null: it was not made. */
  readonly body: string | null;
  /** References that name a record. */
  readonly found: readonly boolean[];
  /** A reference names a parent that the user may not edit. */
  readonly denied: boolean;
}

/**
 * One statement in which new_row is made only when everything the database decides allows it, and all else depends on
 * new_row: the reply, the key, the row itself, its trail.
 */
export const insertSql = (write: Write): Statement =>
  write.deps.templates.statement(write, shapeOf(write), (placeholders) => textOf(write, placeholders));

/** All that the text depends on beside the view; null: rare enough to be put together each time. */
function shapeOf(write: Write): string | null {
  const { unit, view, object, call, place, confirmed } = write;
  if (confirmed || unit.key.part || unit.checkOnly || place.size > 1 || standardObject(object)) return null;
  return `create ${view.key} ${call.operationId} ${call.ieee754Compatible} ${object.apiName} ${shapeOfValues(write)}`;
}

/** What the text depends on among the values. */
export function shapeOfValues({ given }: Write): string {
  const fields = given.map(({ field, lookup, value }) => {
    const targets = lookup?.targets.map(({ object: target, by }) => `${target.apiName}.${by.apiName}`) ?? [];
    return `${field.apiName}${lookup ? `:${targets.join('|')}` : value === null ? '-' : ''}`;
  });
  return fields.join();
}

/** Result of insertManySql for each of the writes, in their order. */
export interface InsertedRow extends Versions {
  readonly made: boolean;
  readonly found: readonly boolean[];
  readonly denied: boolean;
}

/** The same for parts of one transaction that have one object and one shapeOfValues. */
export function insertManySql(writes: readonly [Write, ...Write[]]): Statement {
  const set = new SetSql(writes);
  return set.statement(textOf(writes[0], set.placeholders, set));
}

function textOf(write: Write, placeholders: Placeholders<Write>, set: SetSql<Write> | null = null): string {
  const { object, unit, given } = write;
  const { of, constant } = placeholders;
  const bound = { bind: constant };
  const { schema, key } = unit;
  const { cte: references, ids } = referencesSql(
    write,
    given,
    (item) => ({
      ...within(placeholders, itemAt(given.indexOf(item))),
      constant,
    }),
    set !== null,
  );
  const { columns, selects } = columnsOf(write, placeholders, ids, set !== null);
  const deniedParents = deniedParentsSql(write, bound, ids, null);
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id: null,
    changed: null,
    moves: ids,
    gate: ' AND EXISTS (SELECT FROM state)',
  });
  const keyValues = within(placeholders, keyOf).of;
  // A request that is repeated under its key takes no number.
  const takesNumber = Object.values(object.fields).some(isNumbered);
  const conditions = [
    freshSql(write, bound),
    ...[...ids.values()].map((id) => `${id} IS NOT NULL`),
    ...(deniedParents ? [set ? 'NOT denied_parents.denied' : 'NOT (SELECT denied FROM denied_parents)'] : []),
    ...(takesNumber ? [claimableSql(schema, key, keyValues)] : []),
  ];
  if (set) {
    const from = `state, refs JOIN input USING (n)${deniedParents ? ' JOIN denied_parents USING (n)' : ''}`;
    const position = `(new_row._n + ${constant(write.place.index - 1, 'integer')})::integer`;
    const ctes = [
      stateSql(write),
      references,
      ...(deniedParents
        ? [`denied_parents AS MATERIALIZED (SELECT refs.n, ${deniedParents} AS denied FROM refs)`]
        : []),
      ...parents.ctes,
      `new_row AS MATERIALIZED (SELECT input.n AS _n, ${selects.join(', ')}
        FROM ${from} WHERE ${conditions.join(' AND ')}${parents.after})`,
      `inserted AS (INSERT INTO ${table(schema, object.apiName)} (${columns.join(', ')})
        SELECT ${columns.join(', ')} FROM new_row)`,
      `change AS MATERIALIZED (SELECT new_row."id" AS record_id, 1 AS record_version, ${position} AS position,
          ${randomTrailIds}, ${createdChanges(write)} AS changes FROM new_row)`,
      ...trailSql(write, placeholders, object, { kind: 'create', from: 'change', transactionSize: write.place.size }),
    ];
    const answer = `SELECT ${VERSION_COLUMNS}, new_row._n IS NOT NULL AS made, ${foundSql(ids)} AS found,
        ${deniedParents ? 'denied_parents.denied' : 'false'} AS denied
      FROM ${from} LEFT JOIN new_row ON new_row._n = input.n${actorSql(write, placeholders)} ORDER BY input.n`;
    return `WITH input AS MATERIALIZED (${set.input()}),\n${ctes.join(',\n')}\n${answer}`;
  }
  const json = recordJson('new_row', write.access.readable, write.call.ieee754Compatible);
  const outcome = {
    status: '201',
    headers: of(headersOf, 'jsonb'),
    body: 'reply.body',
  };
  const ctes = [
    stateSql(write),
    references,
    ...(deniedParents ? [`denied_parents AS MATERIALIZED (SELECT ${deniedParents} AS denied FROM refs)`] : []),
    ...parents.ctes,
    `new_row AS MATERIALIZED (SELECT ${selects.join(', ')}
      FROM state, refs WHERE ${conditions.join(' AND ')}${parents.after})`,
    `reply AS MATERIALIZED (SELECT ${json}::text AS body FROM new_row)`,
    `key_claim AS (${claimKeySql(schema, key, keyValues, 'FROM reply', outcome)})`,
    `inserted AS (INSERT INTO ${table(schema, object.apiName)} (${columns.join(', ')})
      SELECT ${columns.join(', ')} FROM new_row WHERE EXISTS (SELECT FROM key_claim))`,
    `change AS MATERIALIZED (SELECT new_row."id" AS record_id, 1 AS record_version, ${write.place.index} AS position,
        ${newTrailIds(placeholders)}, ${createdChanges(write)} AS changes
      FROM new_row WHERE EXISTS (SELECT FROM key_claim))`,
    ...trailSql(write, placeholders, object, { kind: 'create', from: 'change', transactionSize: write.place.size }),
    ...confirmedSql(write, placeholders, 'change'),
    ...storeStandardSql(write, bound, 'change'),
  ];
  return `WITH ${ctes.join(',\n')}
    SELECT ${CLAIM_COLUMNS}, (SELECT body FROM reply) AS body, ${foundSql(ids)} AS found,
      ${deniedParents ? '(SELECT denied FROM denied_parents)' : 'false'} AS denied
    FROM state, refs${actorSql(write, placeholders)}`;
}

/** Columns of the new row with the SQL of their values. */
function columnsOf(
  write: Write,
  { of }: Placeholders<Write>,
  ids: ResolvedReferences,
  many: boolean,
): { columns: string[]; selects: string[] } {
  const { object, unit } = write;
  const user = of(userOf, 'uuid');
  const given = new Map(write.given.map((item, index) => [item.field.apiName, { item, index }]));
  const columns: string[] = [];
  const selects: string[] = [];
  const sqlOf = (field: FieldMeta): string => {
    const found = given.get(field.apiName);
    if (found) return ids.get(found.item) ?? of(valueAt(found.index), typeOf(field).bindType);
    // A number that was taken is not given back by a rollback.
    if (isNumbered(field) && unit.checkOnly) return 'NULL';
    if (isNumbered(field)) return autoNumberSql(unit.schema, object.apiName, field, many ? ' WHERE input.n > 0' : '');
    if (field.rollup) return emptyRollup(field);
    switch (field.system ? field.apiName : '') {
      case 'id':
        return of(idOf, 'uuid');
      case 'ownerId':
      case 'createdById':
      case 'updatedById':
        return user;
      case 'createdAt':
      case 'updatedAt':
        return 'statement_timestamp()';
      case 'recordVersion':
        return '1';
      default:
        return 'NULL';
    }
  };
  for (const field of storedFields(object)) {
    columns.push(columnName(field));
    // The column's own type, so that the answer shows what is stored: 10.5 in numeric(18,2) is 10.50.
    selects.push(`(${sqlOf(field)})::${columnType(field)} AS ${columnName(field)}`);
  }
  return { columns, selects };
}

/**
 * The next number of a sequence in the field's format, such as INV-00042; longer numbers keep all their digits. `each`: a
 * condition that is true, on the rows of which each takes a number.
 */
export function autoNumberSql(schema: string, objectApiName: string, field: FieldMeta, each = ''): string {
  const sequence = literal(`${schema}.${identifier(`_seq_${objectApiName}_${field.apiName}`)}`);
  return `(SELECT ${formattedSql(field.format, 'next.n')} FROM (SELECT nextval(${sequence}) AS n${each}) next)`;
}

/** `{field: {from: null, to}}` of all values of a new record that the platform does not maintain. */
const createdChanges = (write: Write): string =>
  changesSql(
    createdFields(write),
    () => 'NULL',
    (field) => outputOf('new_row', field),
  );

export const createdFields = (write: Write): FieldMeta[] => [
  ...write.given.filter((item) => item.value !== null || item.lookup).map((item) => item.field),
  ...Object.values(write.object.fields).filter(isNumbered),
];
