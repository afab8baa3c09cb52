/** Checks that several mutations share. */
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import { typeOf } from '../../../lib/field-types/registry.ts';
import { keyForm } from '../../../lib/matching/forms.ts';
import { conditionSql } from '../../../lib/query/sql.ts';
import type { FieldMeta } from '../../../lib/snapshot/types.ts';
import { identifier } from '../../../mixins/database/database.ts';
import { answerOf, findKey } from '../../../mixins/idempotency/idempotency.ts';
import { columnType, Sql, table } from '../sql.ts';
import { assertFresh, recordNotFound } from '../tenants.ts';
import { type Given, referenceNotFound, validationFailed } from './body.ts';
import { deniedParentsSql, parentDenied } from './sharing.ts';
import type { Write } from './write.ts';

/**
 * Reads the row that begins with versions, claimed keys and the locked record's version. False: the key had been used
 * before, and `reply` is what it stands for.
 */
export async function readLock(write: Write, row: readonly unknown[]): Promise<boolean> {
  assertFresh(write.view, row[0], row[1]);
  if (row[2] === 0) {
    write.reply = answerOf(await findKey(write.tx, write.key), write.key);
    if (!write.reply) throw new PlatformError('WRITE_CONTENTION', 'The idempotency key changed hands; try again.');
    return false;
  }
  if (row[3] === null) throw recordNotFound();
  write.recordVersion = row[3] as number;
  return true;
}

/** 403 when a readable field may not be edited: permission comes before content. */
export function refuseDenied({ denied }: Write): void {
  if (denied.length === 0) return;
  throw new PlatformError('FIELD_PERMISSION_DENIED', 'Some fields may be read but not edited.', {
    errors: [...denied],
    details: { layer: 'fieldPermission' },
  });
}

/** SQL of the id of the record that a reference names; NULL when there is none that the user can see. */
export function lookupSql(schema: string, sql: Sql, item: Given): string {
  const found = item.lookup!.targets.map(
    ({ object, by, value, sharing }) =>
      `(SELECT t."id" FROM ${table(schema, object.apiName)} t WHERE ${sameKey(`t.${identifier(by.apiName)}`, sql.bind(value, typeOf(by).bindType), by)}${
        item.field.apiName === 'ownerId' ? ' AND t."active"' : ''
      }${sharing ? ` AND ${conditionSql(sharing, 't', schema.slice(1, -1), sql.bind)}` : ''} LIMIT 1)`,
  );
  return found.length === 1 ? found[0]! : `COALESCE(${found.join(', ')})`;
}

/** Equality of a column with a bound value, as the unique index of the field has it. */
export const sameKey = (column: string, value: string, field: FieldMeta): string =>
  `${keyForm(field, column)} = ${boundKey(value, field)}`;

/** A bound value as the unique index of its field would hold it: the column's type says whose upper and lower case. */
export const boundKey = (value: string, field: FieldMeta): string => keyForm(field, `(${value}::${columnType(field)})`);

/** 422 with all violations, those included that only the database can find. */
export async function refuseInvalid(write: Write): Promise<void> {
  if (write.invalid.length === 0) return;
  throw validationFailed([...write.invalid, ...(await missingReferences(write))]);
}

/** Off the success path only: there the statement of the write finds them itself. */
export async function missingReferences(write: Write): Promise<Violation[]> {
  const lookups = write.given.filter((item) => item.lookup);
  if (lookups.length === 0) return [];
  const sql = new Sql();
  const found = new Map(lookups.map((item, index) => [item, `r.r${index}`]));
  const deniedParents = deniedParentsSql(write, sql, found, null) ?? 'false';
  const { rows } = await write.tx.arrays(
    sql.statement(
      `WITH r AS MATERIALIZED (SELECT ${lookups.map((item, index) => `${lookupSql(write.schema, sql, item)} AS r${index}`).join(', ')})
      SELECT s.metadata_version, s.access_version, ${lookups.map((_, index) => `r.r${index} IS NOT NULL`).join(', ')}, ${deniedParents} FROM ${write.schema}._state s, r`,
    ),
  );
  const row = rows[0]!;
  assertFresh(write.view, row[0], row[1]);
  if (row.at(-1) === true) throw parentDenied(); // permission comes before content
  return lookups.filter((_, index) => row[2 + index] === false).map((item) => referenceNotFound(item.field));
}
