/** The part of a statement that every mutation of a record begins with: the versions of the tenant and the key. */
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { claimKeySql } from '../../../mixins/mutation/key.sql.ts';
import { VERSION_COLUMNS, type Versions } from '../view.ts';
import { standardObject } from './standard-objects.ts';
import type { Write } from './write.ts';

/** Result of a statement that claims the key. */
export interface ClaimRow extends Versions {
  /** False: the key had been used before. */
  readonly claimed: boolean;
}

/** Columns of ClaimRow, of the CTEs state and key_claim. */
export const CLAIM_COLUMNS = `${VERSION_COLUMNS}, EXISTS (SELECT FROM key_claim) AS claimed`;

const stateLock = (object: Pick<ObjectMeta, 'apiName'>): string =>
  standardObject(object)?.changesAccess ? 'UPDATE' : 'SHARE';

/** CTE state: the versions of the tenant, locked; exclusively by a write that changes them. */
export const stateSql = ({ object, unit: { schema } }: Write): string =>
  `state AS MATERIALIZED (SELECT metadata_version, access_version
    FROM ${schema}._state FOR ${stateLock(object)})`;

/** The same lock before several writes of the object; the versions. */
export const lockStateSql = (schema: string, object: Pick<ObjectMeta, 'apiName'>): Statement => ({
  text: `SELECT ${VERSION_COLUMNS} FROM ${schema}._state state FOR ${stateLock(object)}`,
});

/** SQL condition on state: the versions are those of the view. */
export const freshSql = ({ view }: Write, { bind }: Pick<Sql, 'bind'>): string =>
  `state.metadata_version = ${bind(view.metadataVersion, 'integer')}
    AND state.access_version = ${bind(view.accessVersion, 'integer')}`;

/** CTEs state and key_claim, with which a statement begins that locks the record. */
export function claimSql(write: Write, sql: Sql): string {
  const { schema, key } = write.unit;
  const claim = claimKeySql(schema, key, sql.for(key).of, `FROM state WHERE ${freshSql(write, sql)}`, null);
  return `${stateSql(write)},
    key_claim AS (${claim})`;
}

/** Condition of a CTE that may do something only behind a claimed key, beginning with AND. */
export const IF_CLAIMED = ' AND EXISTS (SELECT FROM key_claim)';
