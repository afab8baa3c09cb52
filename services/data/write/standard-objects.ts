/** Standard objects that do more than every object does. Each registers here; no step of a mutation names one. */
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import { USER_OBJECT } from '../users/rules.ts';
import type { StandardObject, Write } from './write.ts';

const STANDARD_OBJECTS: ReadonlyMap<string, StandardObject> = new Map([['User', USER_OBJECT]]);

export const standardObject = ({ apiName }: Pick<ObjectMeta, 'apiName'>): StandardObject | undefined =>
  STANDARD_OBJECTS.get(apiName);

/** Step: completes the body before it is read. */
export function completeBody(write: Write): void {
  standardObject(write.object)?.completeBody(write);
}

/** Step: permissions on the content, which come before what is wrong with it. */
export function permitStandard(write: Write): void {
  standardObject(write.object)?.permit(write);
}

/** Step: what the object asks of its records beyond the types of their fields. */
export async function checkStandard(write: Write): Promise<void> {
  await standardObject(write.object)?.check(write);
}

/** CTEs of the statement that stores a record; `from` has its record_id. A dry run has none. */
export const storeStandardSql = (write: Write, sql: Pick<Sql, 'bind'>, from: string): readonly string[] =>
  write.unit.checkOnly ? [] : (standardObject(write.object)?.storeSql(write, sql, from) ?? []);
