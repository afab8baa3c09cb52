/**
 * All values of a write that must be unique and are not. The index that refuses a row names one of them; what others there
 * are is asked only then, so that writes that succeed do not pay for it.
 */
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { columnName, table } from '../sql.ts';
import { toPlatformError, uniqueConflict } from './failures.ts';
import { sameKey } from './references.ts';
import type { Write } from './write.ts';

/** What a refused write fails with: the error itself, or UNIQUE_VALUE_CONFLICT for several fields. */
export async function withAllConflicts(database: Database, write: Write | null, error: unknown): Promise<unknown> {
  if (write === null || sqlState(error) !== '23505') return error;
  const { view, call, object, access, schema, given, body, id } = write;
  const first = toPlatformError(view, call, error);
  const named = first.code === 'UNIQUE_VALUE_CONFLICT' ? first.details?.['field'] : null;
  if (typeof named !== 'string') return error; // another object's, or one that only the index may name
  const others = given.filter(
    ({ field, value, lookup }) => field.unique && value !== null && lookup === null && field.apiName !== named,
  );
  if (others.length === 0) return error;
  const sql = new Sql();
  const own = sql.bind(id, 'uuid');
  const taken = others.map(
    ({ field, value }) =>
      `EXISTS (SELECT FROM ${table(schema, object.apiName)} t WHERE ${sameKey(`t.${columnName(field)}`, sql.bind(value, typeOf(field).bindType), field)} AND t."id" <> ${own})`,
  );
  const { rows } = await database.tenant(view.tenantId, (tx) => tx.arrays(sql.statement(`SELECT ${taken.join(', ')}`)));
  const names = new Set([
    named,
    ...others.filter((_, index) => rows[0]![index] === true).map(({ field }) => field.apiName),
  ]);
  if (names.size === 1) return error;
  // In the order of the body.
  const told = [...new Set([...Object.keys(body), ...names])].filter((name) => names.has(name));
  return uniqueConflict(told.map((name) => (access.fields[name]?.read ? name : null)));
}
