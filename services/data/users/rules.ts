/**
 * What a write of a User record must also keep: names that exist in the configuration, at least one administrator, and
 * the two consequences in the same transaction: cached permissions end, auth is told. Source: docs/reference/records.md.
 */

import { accessFor } from '../../../lib/access/rules.ts';
import type { Principal } from '../../../lib/access/types.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import type { PermissionBundle } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { table } from '../sql.ts';
import { own } from '../tenants.ts';
import { pointerTo } from '../write/violations.ts';

import type { Write } from '../write/write.ts';

/** Type of the outbox rows that tell auth about a user. They never become events: sync.ts takes them away again. */
export const USER_SYNC = 'auth.user.sync';

const isUser = (write: Write): boolean => write.object.apiName === 'User';

const notInConfiguration = (field: string, kind: string): Violation =>
  violation(pointerTo(field), 'REFERENCE_NOT_FOUND', `There is no such ${kind}.`, { field });

const valuesOf = (write: Write): Map<string, unknown> =>
  new Map(write.given.map((item) => [item.field.apiName, item.value]));

/** `name` and `displayName` of a user are the same text; a body may give either. */
function mirrorNames(write: Write): void {
  if (!isUser(write)) return;
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
  if (typeof profile === 'string' && !own(snapshot.profiles, profile))
    write.invalid.push(notInConfiguration('profileApiName', 'profile'));
  const role = given.get('roleApiName');
  if (typeof role === 'string' && !own(snapshot.roles, role))
    write.invalid.push(notInConfiguration('roleApiName', 'role'));
  const sets = given.get('permissionSetApiNames');
  if (Array.isArray(sets) && sets.some((name) => !own(snapshot.permissionSets, name as string)))
    write.invalid.push(notInConfiguration('permissionSetApiNames', 'permission set'));
  const timezone = given.get('timezone');
  if (typeof timezone === 'string' && !isTimezone(timezone))
    write.invalid.push(
      violation('/timezone', 'FIELD_FORMAT_INVALID', 'timezone must be an IANA name such as Europe/Berlin.', {
        field: 'timezone',
      }),
    );
}

/** Nobody gives away, or takes for themselves, a system permission that they do not hold: 403. */
function refuseGifts(write: Write): void {
  if (!isUser(write)) return;
  const { snapshot, access } = write.view;
  const given = valuesOf(write);
  const before = { ...write.stored, active: true };
  const after = { ...before, ...Object.fromEntries(given), active: true };
  const had = accessFor(snapshot, principalOf(write.id, before)).system;
  const beyond = (bundle: PermissionBundle | undefined): boolean =>
    bundle?.system.some((name) => !had.has(name) && !access.system.has(name)) === true;
  const { profileApiName, permissionSetApiNames } = after as Record<string, unknown>;
  const fields: string[] = [];
  if (given.has('profileApiName') && beyond(own(snapshot.profiles, String(profileApiName))))
    fields.push('profileApiName');
  if (
    given.has('permissionSetApiNames') &&
    ((permissionSetApiNames as string[] | null) ?? []).some((name) => beyond(own(snapshot.permissionSets, name)))
  )
    fields.push('permissionSetApiNames');
  if (fields.length === 0) return;
  const message = 'Only who holds a system permission can give it to others.';
  throw new PlatformError('FIELD_PERMISSION_DENIED', message, {
    errors: fields.map((field) => violation(pointerTo(field), 'FIELD_PERMISSION_DENIED', message, { field })),
    details: { layer: 'fieldPermission' },
  });
}

/** Refuses a username that somebody else on the platform has; what is wrong with the body itself comes first. */
function checkUsername(write: Write): void {
  if (write.usernameConflict && write.invalid.length === 0) throw write.usernameConflict;
}

function beforeCreate(write: Write): void {
  if (!isUser(write)) return;
  refuseGifts(write);
  checkAssignments(write);
  checkUsername(write);
}

async function beforeUpdate(write: Write): Promise<void> {
  if (!isUser(write)) return;
  checkAssignments(write);
  await keepAnAdministrator(write);
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
  permissionSetApiNames: (values['permissionSetApiNames'] as string[] | null) ?? [],
});

/** Nobody locks themselves out, and the tenant always keeps somebody who may manage users. */
async function keepAnAdministrator(write: Write): Promise<void> {
  const { snapshot } = write.view;
  const after = { ...write.stored, ...Object.fromEntries(valuesOf(write)) };
  const managed = (values: Readonly<Record<string, unknown>>): boolean =>
    values['active'] !== false && accessFor(snapshot, principalOf(write.id, values)).system.has('manageUsers');
  if (write.id === write.request.userId && after['active'] === false)
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
  const text = `SELECT count(*)::int FROM ${table(write.schema, 'User')} WHERE "active" IS NOT FALSE AND "id" <> ${sql.bind(write.id, 'uuid')}
    AND ("profileApiName" = ANY(${managing(snapshot.profiles)}) OR "permissionSetApiNames" && ${managing(snapshot.permissionSets)})`;
  return (await write.tx.arrays(sql.statement(text))).rows[0]![0] as number;
}

/** CTE: the row by which auth is told, after the commit and if need be after a crash. `from` has record_id. */
function syncSql(write: Write, sql: Sql, from: string): string {
  return `sync AS (INSERT INTO ${write.schema}._outbox (type, object, record_id, request_id, data)
    SELECT ${literal(USER_SYNC)}, 'User', record_id, ${sql.bind(write.request.requestId, 'text')}, '{}'::jsonb FROM ${from})`;
}

/** Who may do what has changed: every cached permission of the tenant is stale from this commit on. */
const bumpSql = (write: Write, from: string): string =>
  `bump AS (UPDATE ${write.schema}._state SET access_version = access_version + 1 WHERE EXISTS (SELECT FROM ${from}))`;

export const USER_STEPS = {
  mirrorNames,
  refuseGifts,
  beforeCreate,
  beforeUpdate,
  // A new user may stand below others, who see their records from the first one on. A dry run tells nobody.
  createSql: (write: Write, sql: Sql, from: string): string[] =>
    write.checkOnly ? [] : [syncSql(write, sql, from), bumpSql(write, from)],
  updateSql: (write: Write, sql: Sql, from: string): string[] =>
    write.checkOnly ? [] : [syncSql(write, sql, from), bumpSql(write, from)],
};
