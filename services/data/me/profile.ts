/** The user of a token, and the preferences that the user may change. Source: docs/reference/me.md. */
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import { isUserObject } from '../../../lib/schema/user-object.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { recordNotFound, requireApi } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { etagOf, table } from '../sql.ts';
import { timezoneOf, VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { runRecordMutation } from '../write/run-mutation.ts';
import { PERMITTED_UPDATE_STEPS } from '../write/update.ts';
import type { MutationDeps, Step, Write } from '../write/write.ts';

/** Fields of their own record that users change without `manageUsers`. */
const PREFERENCES = ['locale', 'timezone', 'dateFormat', 'emailDigest'] as const;

type Preferences = Readonly<Record<(typeof PREFERENCES)[number], string | null>>;

const preferencesOf = ({ locale, timezone, dateFormat, emailDigest }: Preferences): Preferences => ({
  locale: locale ?? null,
  timezone: timezone ?? null,
  dateFormat: dateFormat ?? null,
  emailDigest: emailDigest ?? null,
});

interface ProfileRow extends Versions, Preferences {
  readonly email: string | null;
  readonly managerId: string | null;
  readonly avatarFileId: string | null;
  readonly recordVersion: number;
}

const profileStatement = (schema: string, userId: string): Statement => ({
  name: `profile ${schema}`,
  text: `SELECT ${VERSION_COLUMNS}, "user"."email", "user"."managerId", "user"."avatarFileId", "user"."recordVersion",
      ${PREFERENCES.map((name) => `"user"."${name}"`).join(', ')}
    FROM ${schema}._state state CROSS JOIN ${table(schema, 'User')} "user" WHERE "user"."id" = $1`,
  values: [userId],
});

export const getProfile: Handler<'me.profile.get', ReadDeps> = ({ database, tenants }, { tenantId, userId }) =>
  tenants.withView(tenantId, userId, async (view): Promise<OperationReply> => {
    const rows = await database.tenant(tenantId, (tx) => tx.all<ProfileRow>(profileStatement(tx.schema, userId)));
    const row = checkedRow(view, rows);
    requireApi(view);
    const { principal } = view.access;
    return {
      headers: { ETag: etagOf(row.recordVersion) },
      body: {
        id: principal.userId,
        username: principal.username,
        displayName: principal.displayName,
        email: row.email,
        locale: row.locale ?? view.snapshot.tenant.locale,
        timezone: timezoneOf(view),
        profileApiName: principal.profileApiName,
        roleApiName: principal.roleApiName,
        active: principal.active,
        apiEnabled: true,
        managerId: row.managerId,
        avatarFileId: row.avatarFileId,
        preferences: preferencesOf(row),
      },
    };
  });

/**
 * Changes the caller's own record by the steps of every update but those that ask for permissions on users. Agents' runs are
 * bound by their policy before it comes here.
 */
export const updatePreferences = (
  deps: MutationDeps,
  request: RequestContext,
  input: OperationInput<'me.preferences.update'>,
): Promise<OperationReply> => {
  const call = { ...input, path: { objectApiName: 'User', id: request.userId } };
  return runRecordMutation(deps, 'update', request, call, { seenAs: withPreferencesAlone, steps: STEPS });
};

/** No caller of these steps can lead them to another record, whatever its path says. */
const STEPS: readonly Step[] = [refuseOthers, ...PERMITTED_UPDATE_STEPS];

function refuseOthers({ object, id, unit: { request } }: Write): void {
  if (!isUserObject(object) || id !== request.userId) throw recordNotFound();
}

/** The same view, in which users have no other fields than PREFERENCES, and these may be changed. */
const withPreferencesAlone = memoize((view: View): View => {
  const { access, key } = view;
  const users = ownEntry(access.objects, 'User');
  if (!users) return view;
  const own: ObjectAccess = {
    ...users,
    fields: Object.fromEntries(PREFERENCES.map((name) => [name, { read: true, edit: true }])),
    readable: PREFERENCES.map((name) => requireField(users.object, name)),
  };
  return { ...view, access: { ...access, objects: { ...access.objects, User: own } }, key: `${key} preferences` };
});
