import type { EmailDigest } from '../../../contracts/data/me.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { auditSql, CallerSql, platformCaller } from '../../../mixins/mutation/audit.ts';
import { table } from '../sql.ts';
import { USER_SYNC } from './rules.ts';

export interface UserRow {
  readonly metadataVersion: number;
  readonly id: string;
  readonly username: string;
  readonly displayName: string | null;
  readonly email: string | null;
  readonly active: boolean | null;
  readonly locale: string | null;
  readonly timezone: string | null;
  readonly emailDigest: EmailDigest | null;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: string[] | null;
  readonly managerId: string | null;
  /** Seconds since 1970. */
  readonly updatedAt: number;
}

const USER = `"user"."id", "user"."username", "user"."displayName", "user"."email", "user"."active", "user"."locale",
        "user"."timezone", "user"."emailDigest", "user"."profileApiName", "user"."roleApiName", "user"."permissionSetApiNames",
        "user"."managerId", floor(extract(epoch FROM "user"."updatedAt"))::bigint AS "updatedAt"`;

export type UserKey = { readonly userId: string } | { readonly username: string };

/** The user with the version of the configuration; no row when there is no such user. */
export function findUserStatement(schema: string, key: UserKey): Statement {
  const [name, condition, value] =
    'userId' in key
      ? ['id', '"user"."id" = $1', key.userId]
      : ['name', 'lower("user"."username") = lower($1)', key.username];
  return {
    name: `user by ${name} ${schema}`,
    text: `SELECT state.metadata_version AS "metadataVersion", ${USER}
      FROM ${schema}._state state CROSS JOIN ${table(schema, 'User')} "user" WHERE ${condition}`,
    values: [value],
  };
}

/** The users with these ids. */
export function usersStatement(schema: string, userIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT state.metadata_version AS "metadataVersion", ${USER}
      FROM ${schema}._state state CROSS JOIN ${table(schema, 'User')} "user"
      WHERE "user"."id" = ANY (${sql.bind(userIds, 'uuid[]')})`,
  );
}

/** Active users with one of the profiles or permission sets, from after `after`. */
export function usersWithStatement(
  schema: string,
  bundles: { readonly profiles: readonly string[]; readonly permissionSets: readonly string[] },
  after: string | null,
  take: number,
): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT state.metadata_version AS "metadataVersion", ${USER}
      FROM ${schema}._state state CROSS JOIN ${table(schema, 'User')} "user"
      WHERE "user"."active" IS NOT FALSE
        AND ("user"."profileApiName" = ANY (${sql.bind(bundles.profiles, 'text[]')})
          OR "user"."permissionSetApiNames" && ${sql.bind(bundles.permissionSets, 'text[]')})
        ${after === null ? '' : `AND "user"."id" > ${sql.bind(after, 'uuid')}`}
      ORDER BY "user"."id" LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** The version of the configuration as it is now. */
export const metadataVersionStatement = (schema: string): Statement => ({
  name: `metadata version ${schema}`,
  text: `SELECT metadata_version AS "metadataVersion" FROM ${schema}._state`,
  values: [],
});

/**
 * Sets the time of the last sign-in unless a later one is stored, with an entry in the audit trail. The version stays: an
 * ETag already read still holds, and without a kind the entry is no change of the record.
 */
export function signInStatement(schema: string, userId: string, signedInAt: string): Statement {
  const sql = new Sql();
  const at = sql.bind(signedInAt, 'timestamptz');
  const id = sql.bind(userId, 'uuid');
  const entry = { operationId: 'auth.user.signedIn', outcome: 'committed', objectApiName: 'User' } as const;
  const caller = new CallerSql(sql.for(platformCaller('ui', requestId(), userId)));
  return sql.statement(`WITH noted AS (
      UPDATE ${table(schema, 'User')} SET "lastSignInAt" = ${at}
      WHERE "id" = ${id} AND ("lastSignInAt" IS NULL OR "lastSignInAt" < ${at})
      RETURNING "id")
    ${auditSql(schema, sql, caller, entry, { recordId: 'noted."id"' })} FROM noted`);
}

export interface UsernameRow {
  readonly id: string;
  /** In lower case. */
  readonly username: string;
}

export const usernamesStatement = (schema: string): Statement => ({
  text: `SELECT "id", lower("username") AS username FROM ${table(schema, 'User')}`,
});

export interface NewUser {
  readonly id: string;
  readonly username: string;
  readonly displayName: string;
  readonly email: string;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: readonly string[];
  readonly managerId: string | null;
}

/** Creates a user with an entry in the audit trail, and requests that auth be informed. To be run in this order. */
export const insertUserStatements = (schema: string, user: NewUser): readonly Statement[] => [
  {
    text: `INSERT INTO ${table(schema, 'User')} ("id", "ownerId", "createdAt", "createdById", "updatedAt",
        "updatedById", "recordVersion", "name", "displayName", "username", "email", "active",
        "profileApiName", "roleApiName",
        "permissionSetApiNames", "managerId")
      VALUES ($1, $1, now(), $1, now(), $1, 1, $2, $2, $3, $4, true, $5, $6, $7, $8)`,
    values: [
      user.id,
      user.displayName,
      user.username,
      user.email,
      user.profileApiName,
      user.roleApiName,
      user.permissionSetApiNames,
      user.managerId,
    ],
  },
  creationAudit(schema, user),
  {
    text: `INSERT INTO ${schema}._outbox (type, object, record_id, data) VALUES ($1, 'User', $2, '{}')`,
    values: [USER_SYNC, user.id],
  },
];

const AUDITED = [
  'username',
  'displayName',
  'email',
  'profileApiName',
  'roleApiName',
  'permissionSetApiNames',
] as const satisfies readonly (keyof NewUser)[];

const creationOf = (user: NewUser): object =>
  Object.fromEntries(AUDITED.map((field) => [field, { from: null, to: user[field] }]));

function creationAudit(schema: string, user: NewUser): Statement {
  const sql = new Sql();
  return sql.statement(
    auditSql(
      schema,
      sql,
      new CallerSql(sql.for(platformCaller('job', requestId()))),
      {
        operationId: 'data.users.provision',
        outcome: 'committed',
        objectApiName: 'User',
        recordId: user.id,
        kind: 'create',
      },
      { recordVersion: '1', changes: sql.bind(JSON.stringify(creationOf(user)), 'jsonb') },
    ),
  );
}
