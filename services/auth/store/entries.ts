/** Entries for the audit trails of tenants: what operators do, what users do on pages, and what is done with links. */
import type { FactorEvent } from '../factors/events.ts';
import type { NewAuditEntry } from './audit-entries.ts';

type Changes = NonNullable<NewAuditEntry['changes']>;

/** Of an operator. `changes`: the values before and after; never a secret. */
export const operatorAct = (
  operationId: string,
  { userId = null, changes = null }: { userId?: string | null; changes?: Changes | null },
): NewAuditEntry => ({ operationId, userId, channel: 'job', changes });

/** The holder of a link needs no sign-in, so the entry has no actor. */
export const passwordSet = (userId: string): NewAuditEntry => ({
  operationId: 'auth.users.setPassword',
  userId,
  channel: 'ui',
  changes: null,
});

/** A person at an OpenID provider is this user from now on. */
export const identityAdded = (
  userId: string,
  { provider, issuer, subject }: { provider: string; issuer: string; subject: string },
): NewAuditEntry => ({
  operationId: 'auth.identities.add',
  userId,
  actorId: userId,
  channel: 'ui',
  changes: {
    provider: { from: null, to: provider },
    issuer: { from: null, to: issuer },
    subject: { from: null, to: subject },
  },
});

/** The person who types a name is not signed in. */
export const passwordRequested = (userId: string): NewAuditEntry => ({
  operationId: 'auth.users.requestPassword',
  userId,
  channel: 'ui',
  changes: null,
});

/** The mail address of a user was changed with a link: confirmed, or restored. */
export const addressChanged = (
  userId: string,
  act: 'confirmAddress' | 'undoAddress',
  from: string,
  to: string,
): NewAuditEntry => ({
  operationId: `auth.users.${act}`,
  userId,
  channel: 'ui',
  changes: { mailAddress: { from, to } },
});

/** As through the API, where the operation makes the same entry. */
export const connectionRevoked = (
  userId: string,
  { connectionId, clientId }: { connectionId: string; clientId: string },
): NewAuditEntry => ({
  operationId: 'me.connections.revoke',
  userId,
  actorId: userId,
  channel: 'ui',
  changes: { connection: { from: connectionId, to: null }, client: { from: clientId, to: null } },
  event: { type: 'me.connection.revoked', data: { connectionId, userId } },
});

/** The user acts on the account page. */
export const calendarLinkChanged = (userId: string, act: 'create' | 'revoke'): NewAuditEntry => ({
  operationId: `auth.calendarLinks.${act}`,
  userId,
  actorId: userId,
  channel: 'ui',
  changes: null,
});

/** `actorId` null: an operator. */
export const factorChanged = (userId: string, event: FactorEvent, actorId: string | null = userId): NewAuditEntry => ({
  operationId: `auth.factors.${event}`,
  userId,
  ...(actorId === null ? {} : { actorId }),
  channel: 'ui',
  changes: null,
});
