/**
 * All values of a write that must be unique and are not. The index that refuses a row names one of them; the others are
 * asked for only then, so that writes that succeed do not pay for it. The text of the error is in constraint-errors.ts.
 */
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { columnName, table } from '../sql.ts';
import { toPlatformError, uniqueConflict } from './constraint-errors.ts';
import { sameKey } from './references.ts';
import type { Write } from './write.ts';

/** The error of a refused write: the original, or UNIQUE_VALUE_CONFLICT for several fields. */
export async function withAllConflicts(database: Database, write: Write | null, error: unknown): Promise<unknown> {
  if (write === null || sqlState(error) !== '23505') return error;
  const {
    view,
    call,
    object,
    access,
    given,
    body,
    id,
    unit: { schema },
  } = write;
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
    ({ field, value }) => `EXISTS (SELECT FROM ${table(schema, object.apiName)} t
      WHERE ${sameKey(`t.${columnName(field)}`, sql.bind(value, typeOf(field).bindType), field)} AND t."id" <> ${own})`,
  );
  const row = await database.tenant(view.tenantId, (tx) =>
    tx.one<{ taken: boolean[] }>(sql.statement(`SELECT ARRAY[${taken.join(', ')}] AS taken`)),
  );
  const names = new Set([
    named,
    ...others.filter((_, index) => row.taken[index] === true).map(({ field }) => field.apiName),
  ]);
  if (names.size === 1) return error;
  // In the order of the body.
  const inOrder = [...new Set([...Object.keys(body), ...names])].filter((name) => names.has(name));
  return uniqueConflict(inOrder.map((name) => (access.fields[name]?.read ? name : null)));
}
