/** The permissions that limit a plan, as they are in the transaction that plans. */
import { accessFor } from '../../lib/access/rules.ts';
import type { Access, Principal } from '../../lib/access/types.ts';
import type { Snapshot, TenantInfo } from '../../lib/schema/snapshot.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { usersStatement } from './acting.sql.ts';
import { compileSnapshot } from './compile.ts';
import { findComponent, type State } from './kinds/component.ts';
import { EXTERNAL_CLIENT } from './kinds/external-client.ts';
import type { Acting } from './kinds/kind.ts';
import type { Project } from './project/project.ts';

/** Reader of a tenant's records. */
export type Reader = Pick<Tx, 'all' | 'one' | 'schema'>;

const WHO_HOLDS_WHAT: ReadonlySet<string> = new Set(['Role', 'Group', 'Profile', 'PermissionSet']);

/** The part of a configuration that says who holds what. */
export const accessSnapshot = (tenant: TenantInfo, state: State): Snapshot =>
  compileSnapshot(tenant, 0, new Map([...state].filter(([, { type }]) => WHO_HOLDS_WHAT.has(type))));

/**
 * A user's holdings, and the users as whom the clients of a project act. Runs as the tenant's role. A user who is gone
 * or deactivated holds nothing.
 */
export async function loadActing(
  tx: Reader,
  userId: string,
  { tenant, before, project }: { tenant: TenantInfo; before: State; project: Project },
): Promise<Acting> {
  const snapshot = accessSnapshot(tenant, before);
  const names = clientUsernames(before, project);
  const users = await tx.all<Principal>(usersStatement(tx.schema, userId, names));
  const access = (user: Principal): Access => accessFor(snapshot, user);
  const actor = users.find((user) => user.userId === userId);
  return {
    actor: actor ? access(actor) : accessFor(snapshot, nobody(userId)),
    // A deactivated user holds what they would have again.
    clientUsers: new Map(users.map((user) => [user.username.toLowerCase(), access({ ...user, active: true })])),
  };
}

/** The users as whom clients of the project act, or acted before. */
function clientUsernames(before: State, project: Project): string[] {
  const clients = [...project.drafts.values()].filter(({ type }) => type === EXTERNAL_CLIENT.type);
  const deleted = project.destructive?.types.find(({ name }) => name === EXTERNAL_CLIENT.type)?.members ?? [];
  const wasNamed = (fullName: string): string[] =>
    namesIn(findComponent(before, EXTERNAL_CLIENT, fullName)?.body.integrationUser);
  return [
    ...clients.flatMap(({ body, fullName }) => [...namesIn(body['integrationUser']), ...wasNamed(fullName)]),
    ...deleted.flatMap(wasNamed),
  ];
}

const namesIn = (username: unknown): string[] => (typeof username === 'string' ? [username.toLowerCase()] : []);

const nobody = (userId: string): Principal => ({
  userId,
  username: '',
  displayName: '',
  active: false,
  locale: null,
  timezone: 'UTC',
  profileApiName: '',
  roleApiName: null,
  permissionSetApiNames: [],
});
