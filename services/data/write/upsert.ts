/**
 * Create or update by an external id: which of the two it is shows when the record is looked up, and again when
 * a concurrent request was faster. Source: docs/reference/records.md#create-or-update-by-an-external-id.
 */

import { requireObject } from '../../../lib/access/decide.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { SetSql } from '../../../mixins/database/set-sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { visibleObject } from '../object-access.ts';
import { columnName, etagOf, reachSql, schemaOf, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { boundKey, sameKey } from './references.ts';
import { pointerTo } from './violations.ts';
import {
  type ExternalKey,
  type FoundRecord,
  type MutationCall,
  parseIfMatch,
  type Step,
  type Task,
  type Write,
} from './write.ts';

/** How often the record may appear or vanish between the look-up and the write. */
const RACES_MAX = 10;

type Body = Record<string, unknown>;
type Run = (task: Task) => Promise<OperationReply>;

/** The versions that the record may have: any, none, or those of If-Match. 400 for what cannot be meant. */
export function upsertVersions({ headers }: OperationCall): string[] {
  const { ifMatch, ifNoneMatch } = headers;
  if (ifMatch !== undefined && ifNoneMatch !== undefined)
    throw new PlatformError('PARAMETER_CONFLICT', 'If-Match asks for an update, If-None-Match for a create.', {
      errors: [violation('header:If-None-Match', 'PARAMETER_CONFLICT', 'Send If-Match or If-None-Match, not both.')],
    });
  return ifMatch === undefined ? [] : parseIfMatch(ifMatch);
}

/** Runs the create or the update that the request amounts to, through `run`. */
export async function upsert(
  database: Database,
  view: View,
  call: MutationCall,
  body: Body,
  run: Run,
): Promise<OperationReply> {
  const access = visibleObject(view, call.path.objectApiName);
  const key = externalKey(access, call);
  let found = await find(database, view, access, key, body);
  for (let attempt = 1; ; attempt++) {
    checkVersion(view, access, call, found);
    try {
      if (found) {
        const path = { ...call.path, id: found.id };
        return await run({ mutation: 'update', call: { ...call, path }, body, external: { ...key, found } });
      }
      return await run({
        mutation: 'create',
        call,
        body: { [key.field.apiName]: key.given, ...body },
        external: { ...key, found },
      });
    } catch (error) {
      if (attempt === RACES_MAX || !mayBeRaced(found, error)) throw error;
      const before = found;
      found = await find(database, view, access, key, body);
      // No concurrent insert: it is a duplicate of another record.
      if (!before && !found && hasCode(error, 'DUPLICATE_RULE')) throw error;
    }
  }
}

/** The record was deleted before it could be updated, or another request has created it meanwhile. */
const mayBeRaced = (found: FoundRecord | null, error: unknown): boolean =>
  found
    ? hasCode(error, 'RECORD_NOT_FOUND')
    : sqlState(error) === '23505' ||
      ['UNIQUE_VALUE_CONFLICT', 'WRITE_CONTENTION', 'DUPLICATE_RULE'].some((code) => hasCode(error, code));

const hasCode = (error: unknown, code: string): boolean => error instanceof PlatformError && error.code === code;

/** The field and the value of the address. A field that is hidden or no external id is answered like an unknown one. */
export function externalKey(access: ObjectAccess, { path }: Pick<OperationCall, 'path'>): Omit<ExternalKey, 'found'> {
  const name = path['externalIdField'] ?? '';
  const field = ownEntry(access.fields, name)?.read ? fieldOf(access.object, name) : undefined;
  if (!field?.externalId) throw invalid('externalIdField', 'The object has no such external id for this connection.');
  const text = path['value'] ?? '';
  // A caller without a key would write the record of all others who have none.
  if (text.trim() === '') throw invalid('value', 'An external id must not be blank.');
  const given = typeOf(field).bindType !== 'text' && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  const parsed = typeOf(field).parseFilter(given, field, 'path:value');
  if (!parsed.ok) throw invalid('value', parsed.violation.message);
  return { field, value: parsed.value, given };
}

/** The id of the record that the user finds under an external id; null: there is none. */
export async function idUnderKey(
  database: Database,
  view: View,
  path: Readonly<Record<'objectApiName' | 'externalIdField' | 'value', string>>,
): Promise<string | null> {
  const access = visibleObject(view, path.objectApiName);
  const found = await find(database, view, access, externalKey(access, { path }), {});
  return found?.id ?? null;
}

const invalid = (parameter: string, message: string): PlatformError =>
  new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation(`path:${parameter}`, 'PARAMETER_INVALID', message)],
  });

/** The record of each key of a unique field that the user can see; id null: there is none. */
export function findManySql(view: View, object: ObjectMeta, keys: readonly Omit<ExternalKey, 'found'>[]): Statement {
  const set = new SetSql(keys);
  const field = keys[0]?.field;
  if (!field) throw new Error('No keys are looked for.');
  const { of, constant } = set.placeholders;
  const key = of(({ value }) => value, typeOf(field).bindType);
  const found = `SELECT t."id" AS id, t."recordVersion" AS version FROM ${table(schemaOf(view.tenantId), object.apiName)} t
    WHERE ${sameKey(`t.${columnName(field)}`, key, field)}
      AND ${reachSql(view, { bind: constant }, object.apiName, 'read', 't')} LIMIT 1`;
  return set.statement(`WITH input AS MATERIALIZED (${set.input()})
    SELECT found.id, found.version AS "recordVersion" FROM input LEFT JOIN LATERAL (${found}) found ON true
    ORDER BY input.n`);
}

interface FoundRow extends Versions {
  /** The body gives another value for the key. */
  readonly contradicts: boolean;
  readonly id: string | null;
  readonly recordVersion: number | null;
}

/** The record that the user can see under the key. 400 when the body names another key. */
async function find(
  database: Database,
  view: View,
  { object }: ObjectAccess,
  { field, value }: Omit<ExternalKey, 'found'>,
  body: Body,
): Promise<FoundRecord | null> {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const { bindType } = typeOf(field);
  const key = sql.bind(value, bindType);
  const named = ownEntry(body, field.apiName);
  const other = named === undefined ? null : typeOf(field).parseFilter(named, field, pointerTo(field.apiName));
  // A malformed value is refused with all other violations of the body.
  const contradicts =
    named === null
      ? 'true'
      : other?.ok
        ? `(${boundKey(sql.bind(other.value, bindType), field)} = ${boundKey(key, field)}) IS NOT TRUE`
        : 'false';
  const rows = await database.tenant(view.tenantId, (tx) =>
    tx.all<FoundRow>(
      sql.statement(`SELECT ${VERSION_COLUMNS}, ${contradicts} AS contradicts,
        found.id, found.version AS "recordVersion"
        FROM ${schema}._state state LEFT JOIN LATERAL (
          SELECT t."id" AS id, t."recordVersion" AS version FROM ${table(schema, object.apiName)} t
          WHERE ${sameKey(`t.${columnName(field)}`, key, field)}
            AND ${reachSql(view, sql, object.apiName, 'read', 't')} LIMIT 2) found ON true`),
    ),
  );
  const [row] = rows;
  if (!row) throw new PlatformError('INTERNAL_ERROR', 'The tenant has no state.');
  assertFresh(view, row.metadataVersion, row.accessVersion);
  if (row.contradicts)
    throw new PlatformError('PARAMETER_CONFLICT', 'The external id in the body differs from the one in the path.', {
      errors: [
        violation(pointerTo(field.apiName), 'PARAMETER_CONFLICT', 'The address says otherwise.', {
          field: field.apiName,
        }),
      ],
    });
  // An external id need not be unique.
  if (rows.length > 1)
    throw new PlatformError('UNIQUE_VALUE_CONFLICT', 'More than one record has this external id.', {
      details: { field: field.apiName },
      errors: [
        violation('path:value', 'UNIQUE_VALUE_CONFLICT', 'More than one record has this external id.', {
          field: field.apiName,
        }),
      ],
    });
  return row.id === null || row.recordVersion === null ? null : { id: row.id, recordVersion: row.recordVersion };
}

/** If-Match is for updates only, If-None-Match: * for creates only. A missing permission for that comes first. */
function checkVersion(
  view: View,
  { object }: ObjectAccess,
  { headers }: OperationCall,
  found: FoundRecord | null,
): void {
  if (found ? headers.ifNoneMatch === undefined : headers.ifMatch === undefined) return;
  requireObject(view.access, object.apiName, found ? 'create' : 'update');
  throw new PlatformError(
    'ETAG_MISMATCH',
    found ? 'There is a record with this external id already.' : 'There is no record with this external id any more.',
    { details: { currentETag: found ? etagOf(found.recordVersion) : null } },
  );
}

/**
 * Step of a create by an external id that no index keeps unique: one at a time, and only while there is none. Needs a
 * transaction.
 */
export const lockKey: Step = async ({ external, view, object, unit: { schema, tx } }: Write) => {
  if (!external || external.field.unique) return;
  const { field, value } = external;
  const sql = new Sql();
  const key = sql.bind(value, typeOf(field).bindType);
  const name = sql.bind(`${schema} ${object.apiName} ${field.apiName} `, 'text');
  await tx.query(
    sql.statement(`SELECT pg_advisory_xact_lock(hashtextextended(${name} || ${boundKey(key, field)}, 0))`),
  );
  const again = new Sql();
  const found = await tx.first(
    again.statement(`SELECT 1 FROM ${table(schema, object.apiName)} t
      WHERE ${sameKey(`t.${columnName(field)}`, again.bind(value, typeOf(field).bindType), field)}
        AND ${reachSql(view, again, object.apiName, 'read', 't')} LIMIT 1`),
  );
  if (!found) return;
  throw new PlatformError(
    'WRITE_CONTENTION',
    'Another request has created a record with this external id; try again.',
    {
      retryAfterSeconds: 1,
    },
  );
};
