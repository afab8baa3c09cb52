/**
 * What is special about the standard object User: names that exist in the configuration, at least one administrator,
 * and two consequences in the same transaction: cached permissions end, and auth is informed. Source:
 * docs/reference/records.md.
 */

import { accessFor } from '../../../lib/access/rules.ts';
import type { ObjectAccess, Principal } from '../../../lib/access/types.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { table } from '../sql.ts';
import { pointerTo } from '../write/violations.ts';

import type { MutationDeps, StandardObject, Task, Write } from '../write/write.ts';

/** Type of the outbox rows by which auth is informed of a user. They never become events: sync.ts removes them. */
export const USER_SYNC = 'auth.user.sync';

const notInConfiguration = (field: string, kind: string): Violation =>
  violation(pointerTo(field), 'REFERENCE_NOT_FOUND', `There is no such ${kind}.`, { field });

const valuesOf = (write: Write): Map<string, unknown> =>
  new Map(write.given.map((item) => [item.field.apiName, item.value]));

/** `name` and `displayName` of a user are the same text; a body may give either. */
function mirrorNames(write: Write): void {
  const { name, displayName } = write.body;
  if (name === undefined && displayName !== undefined) write.body = { ...write.body, name: displayName };
  else if (displayName === undefined && name !== undefined) write.body = { ...write.body, displayName: name };
  else if (name !== displayName)
    write.invalid.push(
      violation('/displayName', 'VALIDATION_RULE', 'name and displayName are the same text; send one of them.', {
        field: 'displayName',
      }),
    );
}

/** Profile, role and permission sets must exist in the configuration that this write is checked against. */
function checkAssignments(write: Write): void {
  const { snapshot } = write.view;
  const given = valuesOf(write);
  const profile = given.get('profileApiName');
  if (typeof profile === 'string' && !ownEntry(snapshot.profiles, profile))
    write.invalid.push(notInConfiguration('profileApiName', 'profile'));
  const role = given.get('roleApiName');
  if (typeof role === 'string' && !ownEntry(snapshot.roles, role))
    write.invalid.push(notInConfiguration('roleApiName', 'role'));
  const sets = given.get('permissionSetApiNames');
  if (textsOf(sets).some((name) => !ownEntry(snapshot.permissionSets, name)))
    write.invalid.push(notInConfiguration('permissionSetApiNames', 'permission set'));
  const timezone = given.get('timezone');
  if (typeof timezone === 'string' && !isTimezone(timezone))
    write.invalid.push(
      violation('/timezone', 'FIELD_FORMAT_INVALID', 'timezone must be an IANA name such as Europe/Berlin.', {
        field: 'timezone',
      }),
    );
}

/** 403: nobody grants, to others or to themselves, a system permission that they do not hold. */
function rejectUngrantablePermissions(write: Write): void {
  const { snapshot, access } = write.view;
  const given = valuesOf(write);
  const before = { ...write.stored, active: true };
  const after: Readonly<Record<string, unknown>> = { ...before, ...Object.fromEntries(given), active: true };
  const had = accessFor(snapshot, principalOf(write.id, before)).system;
  const isUngrantable = (bundle: PermissionBundle | undefined): boolean =>
    bundle?.system.some((name) => !had.has(name) && !access.system.has(name)) === true;
  const fields: string[] = [];
  if (given.has('profileApiName') && isUngrantable(ownEntry(snapshot.profiles, String(after['profileApiName']))))
    fields.push('profileApiName');
  if (
    given.has('permissionSetApiNames') &&
    textsOf(after['permissionSetApiNames']).some((name) => isUngrantable(ownEntry(snapshot.permissionSets, name)))
  )
    fields.push('permissionSetApiNames');
  if (fields.length === 0) return;
  const message = 'Only a user who holds a system permission can grant it.';
  throw new PlatformError('FIELD_PERMISSION_DENIED', message, {
    errors: fields.map((field) => violation(pointerTo(field), 'FIELD_PERMISSION_DENIED', message, { field })),
    details: { layer: 'fieldPermission' },
  });
}

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

/** Asks auth whether the username in the body is free; null: it is, or none is given. */
async function usernameConflict(
  deps: MutationDeps,
  tenantId: string,
  userId: string,
  access: ObjectAccess,
  { mutation, body: { username } }: Task,
): Promise<PlatformError | null> {
  if ((mutation !== 'create' && mutation !== 'update') || !access.permission[mutation]) return null;
  if (typeof username !== 'string' || username.trim() === '') return null;
  try {
    await deps.checkUsername(tenantId, userId, username);
    return null;
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'UNIQUE_VALUE_CONFLICT') return error;
    throw new PlatformError('SERVICE_UNAVAILABLE', 'Usernames cannot be checked at the moment.', {
      retryAfterSeconds: 1,
      cause: error,
    });
  }
}

/** Refuses a username that somebody else on the platform has; what is wrong with the body itself comes first. */
function checkUsername(write: Write): void {
  if (write.usernameConflict && write.invalid.length === 0) throw write.usernameConflict;
}

async function check(write: Write): Promise<void> {
  checkAssignments(write);
  if (write.recordVersion > 0) await keepAnAdministrator(write);
  checkUsername(write);
}

const principalOf = (userId: string, values: Readonly<Record<string, unknown>>): Principal => ({
  userId,
  username: String(values['username'] ?? ''),
  displayName: String(values['displayName'] ?? ''),
  active: values['active'] !== false,
  locale: null,
  timezone: 'UTC',
  profileApiName: String(values['profileApiName'] ?? ''),
  roleApiName: null,
  permissionSetApiNames: textsOf(values['permissionSetApiNames']),
});

/** Nobody locks themselves out, and the tenant always keeps somebody who may manage users. */
async function keepAnAdministrator(write: Write): Promise<void> {
  const { snapshot } = write.view;
  const after = { ...write.stored, ...Object.fromEntries(valuesOf(write)) };
  const managed = (values: Readonly<Record<string, unknown>>): boolean =>
    values['active'] !== false && accessFor(snapshot, principalOf(write.id, values)).system.has('manageUsers');
  if (write.id === write.unit.request.userId && after['active'] === false)
    write.invalid.push(violation('/active', 'VALIDATION_RULE', 'You cannot deactivate yourself.', { field: 'active' }));
  else if (managed(write.stored) && !managed(after) && (await otherAdministrators(write)) === 0)
    write.invalid.push(
      violation('', 'VALIDATION_RULE', 'This is the last active user who may manage users; appoint another one first.'),
    );
}

async function otherAdministrators(write: Write): Promise<number> {
  const { snapshot } = write.view;
  const sql = new Sql();
  const managing = (bundles: Readonly<Record<string, PermissionBundle>>): string =>
    sql.bind(
      Object.values(bundles)
        .filter((bundle) => bundle.system.includes('manageUsers'))
        .map((bundle) => bundle.apiName),
      'text[]',
    );
  const { count } = await write.unit.tx.one<{ count: number }>(
    sql.statement(`SELECT count(*)::int FROM ${table(write.unit.schema, 'User')}
      WHERE "active" IS NOT FALSE AND "id" <> ${sql.bind(write.id, 'uuid')}
        AND ("profileApiName" = ANY(${managing(snapshot.profiles)})
          OR "permissionSetApiNames" && ${managing(snapshot.permissionSets)})`),
  );
  return count;
}

/** CTE: the row by which auth is informed, after the commit and if need be after a crash. `from` has record_id. */
const syncSql = ({ unit }: Write, sql: Sql, from: string): string =>
  `sync AS (INSERT INTO ${unit.schema}._outbox (type, object, record_id, request_id, data)
    SELECT ${literal(USER_SYNC)}, 'User', record_id, ${sql.bind(unit.request.requestId, 'text')}, '{}'::jsonb
    FROM ${from})`;

/** CTE: every cached permission of the tenant is stale from this commit on. */
const newAccessVersionSql = ({ unit }: Write, from: string): string =>
  `new_access_version AS (UPDATE ${unit.schema}._state SET access_version = access_version + 1
    WHERE EXISTS (SELECT FROM ${from}))`;

export const USER_OBJECT: StandardObject = {
  changesAccess: true,
  readsEveryField: true,
  deleteRefusal: 'Users cannot be deleted. Deactivate the user instead.',
  shareRefusal: 'Users are not shared: permissions decide who reads them.',
  usernameConflict,
  completeBody: mirrorNames,
  permit: rejectUngrantablePermissions,
  check,
  // A new user may stand below others, who see their records from the first one on.
  storeSql: (write, sql, from) => [syncSql(write, sql, from), newAccessVersionSql(write, from)],
  committed: (deps, tenantId) => deps.usersChanged(tenantId),
};
