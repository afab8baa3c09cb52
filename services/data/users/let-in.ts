/**
 * How administrators let people in: a link to hand over, or another invitation by mail. Both take an account over, so
 * they are for those who could change the user as they please. Source: docs/reference/mail.md.
 */
import type { AuthActions } from '../../../contracts/auth.ts';
import type { DataActions } from '../../../contracts/data.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import { holdsMore, managesAccess } from '../../../lib/access/holdings.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { requireApi } from '../object-access.ts';
import { assertFresh, type Tenants } from '../tenants.ts';
import type { View } from '../view.ts';
import { addPasswordLink, holdUser, type LetInUser, letInUser, queueInvitation } from './let-in.sql.ts';

export interface LetInDeps {
  readonly database: Database;
  readonly tenants: Tenants;
  prepareLink(user: { tenantId: string; userId: string }): Promise<AuthActions['auth.users.prepareLink']['result']>;
  mayInvite(user: { tenantId: string; userId: string }): Promise<AuthActions['auth.users.mayInvite']['result']>;
}

export function createPasswordLink(
  deps: LetInDeps,
  request: RequestContext,
  call: OperationInput<'users.passwordLinks.create'>,
): Promise<OperationReply> {
  const { tenantId } = request;
  return letIn(deps, request, call, async (userId, authorized) => {
    const prepared = await ofAuth(deps.prepareLink({ tenantId, userId }));
    return authorized(async ({ tx, audit }) => {
      if (prepared.refused !== undefined) throw refusalOf(prepared.refused);
      const { url, tokenHash, validSeconds, signInName } = prepared;
      const hash = Buffer.from(tokenHash, 'base64url');
      const { expiresAt } = await tx.one<{ expiresAt: string | null }>(
        addPasswordLink({ tenantId, userId, madeBy: request.userId, tokenHash: hash, validSeconds }),
      );
      if (expiresAt === null) throw refusalOf('inactive');
      audit({ objectApiName: 'User', recordId: userId });
      const body = { userId, signInName, url, expiresAt };
      // The link is a credential: what is kept under the key has none.
      return { status: 201, body, kept: { ...body, url: null } };
    });
  });
}

export function inviteUser(
  deps: LetInDeps,
  request: RequestContext,
  call: OperationInput<'users.invitations.create'>,
): Promise<OperationReply> {
  return letIn(deps, request, call, async (userId, authorized) => {
    const { tenantId } = request;
    const { refused } = await ofAuth(deps.mayInvite({ tenantId, userId }));
    return authorized(async ({ tx, audit }) => {
      if (refused !== null) throw refusalOf(refused);
      const { outcome } = await tx.one<{ outcome: string }>(queueInvitation(tenantId, userId));
      if (outcome !== 'queued') throw refusalOf(outcome);
      audit({ objectApiName: 'User', recordId: userId });
      return { status: 202, body: { userId } };
    });
  });
}

/** Why a user cannot be let in, by the state in which they are. */
const REFUSALS: Readonly<Record<string, string>> = {
  // Auth learns of a new user a moment after the record is there.
  inactive: 'The user is not active. One who was created or activated just now can be let in a moment later.',
  noPassword: 'The user signs in at the identity provider of the company alone, and has no password.',
  hasPassword: 'The user has set a password; a link replaces it.',
  noAddress: 'The user has no mail address.',
  tooManyMails: 'Too many mails were sent to the user or the address. Try again later, or hand over a link.',
  mailsOff: 'This installation sends no mails: hand over a link instead.',
};

function refusalOf(state: string): PlatformError {
  const currentState = Object.hasOwn(REFUSALS, state) ? state : 'inactive';
  return new PlatformError('STATE_CONFLICT', REFUSALS[currentState] ?? '', { details: { currentState } });
}

type Authorized = (work: (unit: Unit) => Promise<OperationReply>) => Promise<OperationReply>;

/** `work` runs once the caller may let the user in; what it does in `authorized` is one transaction with the check. */
function letIn(
  { database, tenants }: LetInDeps,
  request: RequestContext,
  call: OperationCall & { path: { userId: string } },
  work: (userId: string, authorized: Authorized) => Promise<OperationReply>,
): Promise<OperationReply> {
  const userId = call.path.userId.toLowerCase();
  return tenants.withView(request.tenantId, request.userId, async (view) => {
    const { metadataVersion, accessVersion } = await tenants.versions(request.tenantId);
    assertFresh(view, metadataVersion, accessVersion);
    requireLettingIn(view);
    if (request.agent || request.agentRunId !== null)
      throw new PlatformError(
        'AGENT_POLICY_DENIED',
        'No agent lets people in: what it sees would take an account over.',
      );
    if (!isUuid(userId)) throw noUser();
    return work(userId, (change) =>
      mutate(database, request, call, {
        role: 'tenant',
        async work(unit) {
          await requireOver(unit, view, userId);
          unit.actAs({ service: 'data' });
          return change(unit);
        },
      }),
    );
  });
}

/** True when a user may let another one in at this moment: their rights may have changed since they made a link. */
export async function mayLetIn(
  { database, tenants }: Pick<LetInDeps, 'database' | 'tenants'>,
  { tenantId, userId, madeBy }: DataActions['data.users.mayLetIn']['params'],
): Promise<boolean> {
  try {
    return await tenants.withView(tenantId, madeBy, async (view) => {
      const { metadataVersion, accessVersion } = await tenants.versions(tenantId);
      assertFresh(view, metadataVersion, accessVersion);
      requireLettingIn(view);
      const user = await database.tenant(tenantId, (tx) => tx.first<LetInUser>(letInUser(tx.schema, userId)));
      return user !== null && !isAbove(user, userId, view);
    });
  } catch (error) {
    if (error instanceof PlatformError && REFUSING.has(error.code)) return false;
    throw error;
  }
}

/** The maker of a link is gone or inactive, or lacks the API or `manageUsers`. */
const REFUSING: ReadonlySet<string> = new Set(['TOKEN_REVOKED', 'API_ACCESS_DISABLED', 'OBJECT_PERMISSION_DENIED']);

function requireLettingIn(view: View): void {
  requireApi(view);
  if (!holdsPermission(view.access.system, 'manageUsers')) throw permissionDenied('manageUsers');
}

const noUser = (): PlatformError => new PlatformError('RECORD_NOT_FOUND', 'There is no such user.');

/** 404 without such a user; 403 for one who holds more than the caller. */
async function requireOver({ tx, schema }: Unit, view: View, userId: string): Promise<void> {
  const user = await tx.first<LetInUser>(holdUser(schema, userId));
  if (!user) throw noUser();
  if (isAbove(user, userId, view))
    throw new PlatformError('RECORD_ACCESS_DENIED', 'The user holds permissions, a role or groups that you do not.', {
      details: { layer: 'objectPermission' },
    });
}

/** True when a user holds more than the view's user, who lacks manageAccess. */
function isAbove(user: LetInUser, userId: string, { access, snapshot }: View): boolean {
  if (managesAccess(access)) return false;
  const held = accessFor(snapshot, {
    userId,
    username: user.username,
    displayName: user.displayName ?? '',
    active: true,
    locale: null,
    timezone: 'UTC',
    profileApiName: user.profileApiName,
    roleApiName: user.roleApiName,
    permissionSetApiNames: user.permissionSetApiNames ?? [],
  });
  return holdsMore(held, access);
}

async function ofAuth<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The sign-in service is temporarily unavailable.', {
      retryAfterSeconds: 1,
      cause: error,
    });
  }
}
