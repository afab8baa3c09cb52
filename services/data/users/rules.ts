/**
 * Rules of the standard object User: names that exist in the configuration, nothing given that the giver
 * does not hold, at least one administrator, and two consequences in the same transaction: cached permissions end, and
 * auth is informed. Source: docs/reference/records.md.
 */

import { SignInText } from '../../../contracts/auth.ts';
import {
  counts,
  holderSql,
  KEPT_PERMISSIONS,
  type KeptPermission,
  lastHolder,
} from '../../../lib/access/administrators.ts';
import { givesBeyond, holdsMore, managesAccess } from '../../../lib/access/holdings.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Access, ObjectAccess, Principal } from '../../../lib/access/types.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { valueProblem } from '../../../lib/validation.ts';
import { isLocale } from '../../../lib/values/locale.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { displayNameProblem, usernameProblem } from '../../../lib/values/user-names.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { table } from '../sql.ts';
import { pointerTo } from '../write/violations.ts';

import type { ContentChange, MutationDeps, StandardObject, Task, Write } from '../write/write.ts';

/** Type of the outbox rows by which auth is informed of a user. They never become events: sync.ts removes them. */
export const USER_SYNC = 'auth.user.sync';

const USERS_SCOPE = 'users:manage';

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

/**
 * Profile, role and permission sets must exist in the configuration that this write is checked against, and locale and time zone
 * in general.
 */
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
  checkNames(write, given);
  const locale = given.get('locale');
  if (typeof locale === 'string' && !isLocale(locale))
    write.invalid.push(
      violation('/locale', 'FIELD_FORMAT_INVALID', 'locale must be a language tag such as en or pt-BR.', {
        field: 'locale',
      }),
    );
  const timezone = given.get('timezone');
  if (typeof timezone === 'string' && !isTimezone(timezone))
    write.invalid.push(
      violation('/timezone', 'FIELD_FORMAT_INVALID', 'timezone must be an IANA name such as Europe/Berlin.', {
        field: 'timezone',
      }),
    );
}

/** A user keeps the names from before there were these rules, until they are changed. */
function checkNames(write: Write, given: ReadonlyMap<string, unknown>): void {
  for (const [field, problemOf] of [
    ['username', usernameProblem],
    ['displayName', displayNameProblem],
  ] as const) {
    const value = given.get(field);
    if (typeof value !== 'string' || (write.recordVersion > 0 && value === write.stored[field])) continue;
    const problem = problemOf(value);
    if (problem === null) continue;
    write.invalid.push(violation(pointerTo(field), 'FIELD_FORMAT_INVALID', `${field} ${problem}`, { field }));
  }
}

/** Fields of a user that decide what they hold. */
const ASSIGNMENTS = ['profileApiName', 'permissionSetApiNames', 'roleApiName', 'username'] as const;

/** Holdings of a user with these values, as if they were active. */
const accessWith = ({ snapshot }: Access, id: string, values: Readonly<Record<string, unknown>>): Access =>
  accessFor(snapshot, principalOf(id, { ...values, active: true }));

/** Users are also written by reverts, whose operation asks for another scope. */
function requireScope({ unit: { request } }: Write): void {
  if (request.scopes.includes(USERS_SCOPE)) return;
  const message = `The access token lacks the scope ${USERS_SCOPE}, which every change of a user needs.`;
  throw new PlatformError('SCOPE_INSUFFICIENT', message, {
    details: { required: [USERS_SCOPE], granted: [...request.scopes], layer: 'scope' },
  });
}

/**
 * Fields of a user by which the agent policies of the tenant find who decides about agents: `managerId`, the role, and
 * what makes the user a member of a group or ends that.
 */
function decidingFields(access: Access, { id, stored, given }: ContentChange): readonly string[] {
  const approvers = Object.values(access.snapshot.agentPolicies).flatMap(({ rules }) =>
    rules.flatMap((rule) => [...rule.approvers, ...rule.escalateTo]),
  );
  const groups = approvers.flatMap(({ group }) => group ?? []);
  const groupsWith = (values: ContentChange['stored']): string => {
    const { memberships } = accessWith(access, id ?? '', values);
    return groups.filter((group) => memberships.groups.has(group)).join();
  };
  const movesWith = (field: string): boolean =>
    groups.length > 0 && groupsWith({ ...stored, [field]: given.get(field) }) !== groupsWith(stored);
  return [
    ...(approvers.some(({ manager }) => manager) ? ['managerId'] : []),
    ...(approvers.some(({ role }) => role !== undefined) || movesWith('roleApiName') ? ['roleApiName'] : []),
    ...(movesWith('username') ? ['username'] : []),
  ];
}

/** 403: users do not choose who approves what agents do in their name. */
function choiceOfApproversRefusal(access: Access, change: ContentChange): PlatformError | null {
  const { stored, given } = change;
  const fields = decidingFields(access, change).filter(
    (field) => given.has(field) && (given.get(field) ?? null) !== (stored[field] ?? null),
  );
  if (fields.length === 0) return null;
  const message = 'The field decides who approves what agents do: it takes the permission manageAccess.';
  return new PlatformError('FIELD_PERMISSION_DENIED', message, {
    errors: fields.map((field) => violation(pointerTo(field), 'FIELD_PERMISSION_DENIED', message, { field })),
    details: { layer: 'fieldPermission' },
  });
}

function permit(write: Write): void {
  requireScope(write);
  const { id, stored, recordVersion, view } = write;
  const refusal = changeRefusal(view.access, { id: recordVersion > 0 ? id : null, stored, given: valuesOf(write) });
  if (refusal) throw refusal;
}

/** 403 for a change of a user that takes more than the caller holds; those who manage access make every change. */
function changeRefusal(access: Access, change: ContentChange): PlatformError | null {
  if (managesAccess(access)) return null;
  return beyondOwnRefusal(access, change) ?? choiceOfApproversRefusal(access, change);
}

/** 403: users change no one who holds more than they do, and give, to others or to themselves, only what they hold. */
function beyondOwnRefusal(access: Access, { id, stored, given }: ContentChange): PlatformError | null {
  const userId = id ?? '';
  const before = accessWith(access, userId, stored);
  if (id !== null && holdsMore(before, access))
    return new PlatformError('RECORD_ACCESS_DENIED', 'The user holds permissions, a role or groups that you do not.', {
      details: { layer: 'objectPermission' },
    });
  const fields = ASSIGNMENTS.filter(
    (field) =>
      given.has(field) &&
      givesBeyond(accessWith(access, userId, { ...stored, [field]: given.get(field) }), before, access),
  );
  if (fields.length === 0) return null;
  const message = 'Only a user who holds a permission, a role or a membership can give it.';
  return new PlatformError('FIELD_PERMISSION_DENIED', message, {
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
  // An invalid username is refused as a value of the field.
  if (typeof username !== 'string' || username.trim() === '' || valueProblem(SignInText, username)) return null;
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

/** Refuses a username that is taken on the platform; violations of the body itself come first. */
function checkUsername(write: Write): void {
  if (write.usernameConflict && write.invalid.length === 0) throw write.usernameConflict;
}

async function check(write: Write): Promise<void> {
  checkAssignments(write);
  if (write.recordVersion > 0) await keepAdministrators(write);
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
  roleApiName: typeof values['roleApiName'] === 'string' ? values['roleApiName'] : null,
  permissionSetApiNames: textsOf(values['permissionSetApiNames']),
});

/** Users cannot lock themselves out, and the tenant keeps an administrator. */
async function keepAdministrators(write: Write): Promise<void> {
  const { snapshot } = write.view;
  const after = { ...write.stored, ...Object.fromEntries(valuesOf(write)) };
  if (write.id === write.unit.request.userId && after['active'] === false) {
    write.invalid.push(violation('/active', 'VALIDATION_RULE', 'You cannot deactivate yourself.', { field: 'active' }));
    return;
  }
  const system = (values: Readonly<Record<string, unknown>>): Access['system'] =>
    accessFor(snapshot, principalOf(write.id, values)).system;
  const [had, has] = [system(write.stored), system(after)];
  const lost = KEPT_PERMISSIONS.filter((name) => counts(had, name) && !counts(has, name));
  if (lost.length === 0) return;
  const others = await otherHolders(write, lost);
  for (const name of lost.filter((_name, i) => !others[i]))
    write.invalid.push(violation('', 'VALIDATION_RULE', lastHolder(name)));
}

/** For each of these, true when another user holds it. The tenant's versions are locked: no holder changes meanwhile. */
async function otherHolders(write: Write, names: readonly KeptPermission[]): Promise<readonly boolean[]> {
  const { unit, view, id } = write;
  const sql = new Sql();
  const held = names.map(
    (name) => `EXISTS (SELECT FROM ${table(unit.schema, 'User')}
      WHERE "id" <> ${sql.bind(id, 'uuid')} AND ${holderSql(view.snapshot, name, sql.bind)})`,
  );
  const { others } = await unit.tx.one<{ others: boolean[] }>(
    sql.statement(`SELECT ARRAY[${held.join(', ')}] AS others`),
  );
  return others;
}

/** CTE: the row by which auth is informed, after the commit and if need be after a crash. `from` has record_id. */
const syncSql = ({ unit }: Write, sql: Pick<Sql, 'bind'>, from: string): string =>
  `sync AS (INSERT INTO ${unit.schema}._outbox (type, object, record_id, request_id, data)
    SELECT ${literal(USER_SYNC)}, 'User', record_id, ${sql.bind(unit.request.requestId, 'text')}, '{}'::jsonb
    FROM ${from})`;

/** CTE: every cached permission of the tenant is stale from this commit on. */
const newAccessVersionSql = ({ unit }: Write, from: string): string =>
  `new_access_version AS (UPDATE ${unit.schema}._state SET access_version = access_version + 1
    WHERE EXISTS (SELECT FROM ${from}))`;

/** Fields that neither auth nor a cached view holds; views hold locale and time zone. */
const UNCACHED_FIELDS: ReadonlySet<string> = new Set(['dateFormat', 'emailDigest', 'avatarFileId']);

const concernsViews = ({ mutation, changed }: Write): boolean =>
  mutation !== 'update' || changed.some(({ field }) => !UNCACHED_FIELDS.has(field.apiName));

export const USER_OBJECT: StandardObject = {
  changesAccess: true,
  readsEveryField: true,
  deleteRefusal: 'Users cannot be deleted. Deactivate the user instead.',
  shareRefusal: 'Users are not shared: permissions decide who reads them.',
  usernameConflict,
  completeBody: mirrorNames,
  permit,
  changeRefusal,
  fieldsOfChange: [...ASSIGNMENTS, 'managerId'],
  check,
  // A new user may stand below others, who see their records from the first one on.
  storeSql: (write, sql, from) =>
    concernsViews(write) ? [syncSql(write, sql, from), newAccessVersionSql(write, from)] : [],
  committed: (deps, tenantId) => deps.usersChanged(tenantId),
};
