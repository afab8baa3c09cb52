/** Users as provisioning clients see them: by the query language, with the access of the caller. */

import type { Predicate } from '../../../lib/access/predicate.ts';
import { type RequestContext, tenantSchema } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { planList } from '../../../lib/query/plan.ts';
import { compileList } from '../../../lib/query/sql.ts';
import type { ListRequest, QueryView } from '../../../lib/query/types.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { visibleObject } from '../object-access.ts';
import { fetchPage } from '../read/fetch.ts';
import type { ReadDeps } from '../read/read.ts';
import { schemaOf } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { timezoneOf, type View } from '../view.ts';
import { type FilterNode, readFilter } from './filter.ts';
import { addressOf, type Json, type Page, type PageRequest } from './messages.ts';
import {
  deprovisionedStatement,
  type ExternalId,
  externalIdsSql,
  namedSql,
  storedByNameSql,
} from './provisioned.sql.ts';
import { ENTERPRISE_SCHEMA, USER_SCHEMA } from './schema.ts';
import { nameParts } from './user-changes.ts';
import { among, type Found, lookUpsOf, sortField, userPredicate } from './user-filter.ts';

/** A User record as the query language answers it. */
export interface UserRecord {
  readonly id: string;
  readonly username: string;
  readonly displayName?: string | null;
  readonly email?: string | null;
  readonly active?: boolean | null;
  readonly locale?: string | null;
  readonly timezone?: string | null;
  readonly managerId?: string | null;
  readonly profileApiName: string;
  readonly roleApiName?: string | null;
  readonly permissionSetApiNames?: readonly string[] | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly recordVersion: number;
  readonly _etag?: string;
  readonly _expanded?: { readonly managerId?: { readonly displayName?: string | null } | null };
}

const FIELDS = [
  'id',
  'username',
  'displayName',
  'email',
  'active',
  'locale',
  'timezone',
  'managerId',
  'profileApiName',
  'roleApiName',
  'permissionSetApiNames',
  'createdAt',
  'updatedAt',
  'recordVersion',
];

const EVERYTHING: ListRequest = {
  source: 'query',
  take: LIMITS.take_max,
  takeClamped: false,
  skip: 0,
  includeTotal: true,
  includeEtag: true,
  fields: FIELDS,
  where: [],
  whereIn: [],
  filters: null,
  sort: [{ field: 'id', desc: false, pointer: 'query:sortBy' }],
  search: null,
  expand: [
    { reference: 'managerId', pointer: 'query:expand', fields: [{ name: 'displayName', pointer: 'query:expand' }] },
  ],
  cursor: null,
};

const queryViewOf = (view: View): QueryView => ({
  access: view.access,
  snapshot: view.snapshot,
  now: platformTime(),
  timezone: timezoneOf(view),
});

/** Users that pass the predicate, of those whom provisioning sees; `total` counts all of them. */
export async function findUsers(
  deps: ReadDeps,
  view: View,
  predicate: Predicate | null,
  page: Partial<Pick<ListRequest, 'take' | 'skip' | 'sort' | 'includeTotal' | 'expand'>> = {},
): Promise<{ users: UserRecord[]; total: number | null }> {
  const { object } = visibleObject(view, 'User');
  const { tenantId } = view;
  const gone = await deps.database.tenant(tenantId, (tx) => tx.all<{ id: string }>(deprovisionedStatement(tx.schema)));
  const seen = among(
    object,
    gone.map(({ id }) => id),
    true,
  );
  const planned = planList({ ...EVERYTHING, ...page }, object, queryViewOf(view));
  const plan = { ...planned, filter: predicate ? ({ kind: 'and', nodes: [predicate, seen] } as const) : seen };
  const compiled = compileList(constrain(plan, view.access), tenantSchema(tenantId));
  const bytes = await deps.database.tenant(tenantId, (tx) =>
    fetchPage(tx, compiled, (read) => {
      assertFresh(view, read.metadataVersion, read.accessVersion);
      return null;
    }),
  );
  const { records, total }: { records: UserRecord[]; total?: number } = JSON.parse(bytes.toString());
  return { users: records, total: total ?? null };
}

/** Presentation of resources to the client. */
interface Presentation {
  readonly baseUrl: string;
  readonly snapshot: Snapshot;
  readonly externalIds: ReadonlyMap<string, string>;
}

export async function externalIdsOf(
  deps: Pick<ReadDeps, 'database'>,
  { tenantId, clientId }: Pick<RequestContext, 'tenantId' | 'clientId'>,
  resource: 'User' | 'Group',
  ids?: readonly string[],
): Promise<Map<string, string>> {
  if (ids?.length === 0) return new Map();
  const rows = await deps.database.tenant(tenantId, (tx) =>
    tx.all<ExternalId>(externalIdsSql(tx.schema, clientId, resource, ids)),
  );
  return new Map(rows.map(({ id, externalId }) => [id, externalId]));
}

/** The resource of a user (RFC 7643 section 4.1). */
function userResource(user: UserRecord, { baseUrl, snapshot, externalIds }: Presentation): Json {
  const { id, email, locale, timezone, managerId, roleApiName, profileApiName } = user;
  const name = user.displayName ?? user.username;
  const externalId = externalIds.get(id);
  const profile = ownEntry(snapshot.profiles, profileApiName);
  const role = typeof roleApiName === 'string' ? ownEntry(snapshot.roles, roleApiName) : undefined;
  const manager = user._expanded?.managerId;
  const groups = (user.permissionSetApiNames ?? []).map((value) => ({
    value,
    display: ownEntry(snapshot.permissionSets, value)?.label ?? value,
    type: 'direct',
    $ref: addressOf(baseUrl, 'Groups', value),
  }));
  return {
    schemas: managerId ? [USER_SCHEMA, ENTERPRISE_SCHEMA] : [USER_SCHEMA],
    id,
    ...(externalId === undefined ? {} : { externalId }),
    userName: user.username,
    name: nameParts(name),
    displayName: name,
    ...(email ? { emails: [{ value: email, type: 'work', primary: true }] } : {}),
    active: user.active !== false,
    ...(locale ? { locale } : {}),
    ...(timezone ? { timezone } : {}),
    entitlements: [
      { value: profileApiName, display: profile?.label ?? profileApiName, type: 'profile', primary: true },
    ],
    ...(roleApiName
      ? { roles: [{ value: roleApiName, display: role?.label ?? roleApiName, type: 'role', primary: true }] }
      : {}),
    ...(groups.length > 0 ? { groups } : {}),
    ...(managerId
      ? {
          [ENTERPRISE_SCHEMA]: {
            manager: {
              value: managerId,
              $ref: addressOf(baseUrl, 'Users', managerId),
              ...(manager?.displayName ? { displayName: manager.displayName } : {}),
            },
          },
        }
      : {}),
    meta: {
      resourceType: 'User',
      created: user.createdAt,
      lastModified: user.updatedAt,
      location: addressOf(baseUrl, 'Users', id),
      version: weak(user._etag ?? ''),
    },
  };
}

/** Parts of the resource that change without the record: names of groups, the client's external id. */
export const weak = (etag: string): string => `W/${etag}`;

/** A page of users that a client asks for. */
export async function listUsers(
  deps: ReadDeps,
  request: RequestContext,
  baseUrl: string,
  asked: PageRequest,
): Promise<Page> {
  const filter = asked.filter === null ? null : readFilter(asked.filter);
  const sort = asked.sortBy === null ? null : sortField(asked.sortBy);
  const found = await lookUp(deps, request, filter);
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { object } = visibleObject(view, 'User');
    const predicate = filter && userPredicate(filter, object, queryViewOf(view), found);
    const { users, total } = await findUsers(deps, view, predicate, {
      take: Math.max(1, asked.count),
      skip: asked.startIndex - 1,
      ...(sort === null ? {} : { sort: [{ field: sort, desc: asked.descending, pointer: 'query:sortBy' }] }),
    });
    const shown = asked.count === 0 ? [] : users;
    const externalIds = await externalIdsOf(
      deps,
      request,
      'User',
      shown.map(({ id }) => id),
    );
    const presentation = { baseUrl, snapshot: view.snapshot, externalIds };
    return { total: total ?? 0, resources: shown.map((user) => userResource(user, presentation)) };
  });
}

/** Finds the users that a comparison of usernames or external ids names. */
async function lookUp(deps: ReadDeps, request: RequestContext, filter: FilterNode | null): Promise<Found> {
  const found = new Map<ReturnType<typeof lookUpsOf>[number], readonly string[]>();
  const { tenantId, clientId } = request;
  for (const leaf of lookUpsOf(filter)) {
    const { path, value } = leaf;
    const statement =
      typeof value !== 'string'
        ? null
        : path === 'username'
          ? storedByNameSql(schemaOf(tenantId), clientId, value)
          : namedSql(schemaOf(tenantId), clientId, 'User', value);
    const rows = statement ? await deps.database.tenant(tenantId, (tx) => tx.all<{ id: string }>(statement)) : [];
    found.set(
      leaf,
      rows.map(({ id }) => id),
    );
  }
  return found;
}

/** The user with this id; null: there is none whom provisioning sees. */
export async function readUser(
  deps: ReadDeps,
  request: RequestContext,
  baseUrl: string,
  id: string,
): Promise<{ resource: Json; etag: string } | null> {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { object } = visibleObject(view, 'User');
    const { users } = await findUsers(deps, view, among(object, [id], false), { take: 1, includeTotal: false });
    const [user] = users;
    if (!user) return null;
    const externalIds = await externalIdsOf(deps, request, 'User', [id]);
    return {
      resource: userResource(user, { baseUrl, snapshot: view.snapshot, externalIds }),
      etag: weak(user._etag ?? ''),
    };
  });
}
