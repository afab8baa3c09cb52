/** The statements that read a tenant's versions and its users. */
import type { Directory } from '../../lib/access/directory.ts';
import type { Principal } from '../../lib/access/types.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { table } from './sql.ts';
import { VERSION_COLUMNS, type Versions } from './view.ts';

export const readVersions = (tx: Tx): Promise<Versions> =>
  tx.one<Versions>({
    text: `SELECT ${VERSION_COLUMNS} FROM ${tx.schema}._state state`,
  });

interface PrincipalRow extends Versions {
  /** null: there is no such user; then everything else of the user is null, too. */
  readonly username: string | null;
  readonly displayName: string | null;
  readonly active: boolean | null;
  readonly locale: string | null;
  readonly timezone: string | null;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: readonly string[] | null;
}

/** The user behind a request as the tenant's record says, with the versions that go with it. */
export async function findPrincipal(
  tx: Tx,
  userId: string,
): Promise<{ versions: Versions; principal: Principal | null }> {
  const { metadataVersion, accessVersion, username, ...user } = await tx.one<PrincipalRow>({
    name: `principal ${tx.schema}`,
    text: `SELECT ${VERSION_COLUMNS},
        u."username", u."displayName", u."active", u."locale", u."timezone",
        u."profileApiName", u."roleApiName", u."permissionSetApiNames"
      FROM ${tx.schema}._state state LEFT JOIN ${table(tx.schema, 'User')} u ON u."id" = $1`,
    values: [userId],
  });
  const versions = { metadataVersion, accessVersion };
  if (username === null) return { versions, principal: null };
  return {
    versions,
    principal: {
      userId,
      username,
      displayName: user.displayName ?? username,
      active: user.active !== false,
      locale: user.locale,
      timezone: user.timezone ?? '',
      profileApiName: user.profileApiName,
      roleApiName: user.roleApiName,
      permissionSetApiNames: user.permissionSetApiNames ?? [],
    },
  };
}

interface DirectoryRow extends Versions {
  /** null: the tenant has no users. */
  readonly userId: string | null;
  readonly username: string;
  readonly roleApiName: string | null;
}

/** All users as sharing sees them, with the versions that go with them. */
export async function readDirectory(tx: Tx): Promise<{ versions: Versions | null; directory: Directory }> {
  const rows = await tx.all<DirectoryRow>({
    text: `SELECT ${VERSION_COLUMNS},
        u."id"::text AS "userId", u."username", u."roleApiName"
      FROM ${tx.schema}._state state LEFT JOIN ${table(tx.schema, 'User')} u ON true`,
  });
  return {
    versions: rows[0] ?? null,
    directory: {
      users: rows.flatMap(({ userId, username, roleApiName }) =>
        userId === null ? [] : [{ userId, username, roleApiName }],
      ),
    },
  };
}
