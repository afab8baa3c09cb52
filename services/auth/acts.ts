/** What operators do, and what is done with their links, on the way to the audit trails of the tenants it concerns. */
import type { DataActions } from '../../contracts/data.ts';
import type { Tenant } from './clients.ts';
import type { AddressDecision, ChangedAddress } from './store/addresses.sql.ts';

type Entry = DataActions['data.audit.note']['params'];

/** Resolves when the entry is in the trail. */
export type NoteAct = (entry: Entry) => Promise<unknown>;

const PAGE = 200;

export interface Act {
  readonly operationId: string;
  readonly userId?: string;
  /** What was there, and what is there now; never a secret. */
  readonly changes?: Entry['changes'];
}

export class Acts {
  readonly #note: NoteAct;
  readonly #tenants: (after: string | undefined, take: number) => Promise<Tenant[]>;

  constructor(note: NoteAct, tenants: (after: string | undefined, take: number) => Promise<Tenant[]>) {
    this.#note = note;
    this.#tenants = tenants;
  }

  async note(tenantId: string, { operationId, userId = undefined, changes = null }: Act): Promise<void> {
    await this.#note({ tenantId, operationId, userId: userId ?? null, channel: 'job', changes });
  }

  /** The holder of a link needs no sign-in, so nobody is named as the one who did it. */
  async passwordSet(tenantId: string, userId: string): Promise<void> {
    await this.#note({ tenantId, operationId: 'auth.users.setPassword', userId, channel: 'ui', changes: null });
  }

  /** A person at an OpenID provider is this user from now on. */
  async identityAdded(
    tenantId: string,
    userId: string,
    { provider, issuer, subject }: { provider: string; issuer: string; subject: string },
  ): Promise<void> {
    const changes = {
      provider: { from: null, to: provider },
      issuer: { from: null, to: issuer },
      subject: { from: null, to: subject },
    };
    await this.#note({ tenantId, operationId: 'auth.identities.add', userId, actorId: userId, channel: 'ui', changes });
  }

  /** Whoever types a name is not signed in. */
  async passwordRequested(tenantId: string, userId: string): Promise<void> {
    await this.#note({ tenantId, operationId: 'auth.users.requestPassword', userId, channel: 'ui', changes: null });
  }

  /** Of a mail address: its user has confirmed it, or agreed or objected to it from the one before. */
  async addressDecided({ tenantId, userId, address }: ChangedAddress, decision: AddressDecision): Promise<void> {
    const operationId = {
      confirm: 'auth.users.confirmAddress',
      agree: 'auth.users.agreeToAddress',
      object: 'auth.users.refuseAddress',
    }[decision];
    const [from, to] = decision === 'object' ? [address, null] : [null, address];
    await this.#note({ tenantId, operationId, userId, channel: 'ui', changes: { mailAddress: { from, to } } });
  }

  /** Of a confirmed mail address to which nobody has objected in time. */
  async addressUnopposed({ tenantId, userId, address }: ChangedAddress): Promise<void> {
    const changes = { mailAddress: { from: null, to: address } };
    await this.#note({ tenantId, operationId: 'auth.users.settleAddress', userId, channel: 'job', changes });
  }

  /** As through the API, where the same entry is made by the operation. */
  async connectionRevoked(
    { tenantId, userId }: { tenantId: string; userId: string },
    { connectionId, clientId }: { connectionId: string; clientId: string },
  ): Promise<void> {
    const changes = { connection: { from: connectionId, to: null }, client: { from: clientId, to: null } };
    const operationId = 'me.connections.revoke';
    await this.#note({ tenantId, operationId, userId, actorId: userId, channel: 'ui', changes });
  }

  /** What concerns every tenant is in the trail of each of them. */
  async noteForAll(act: Act): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#tenants(after, PAGE);
      for (const { id } of page) await this.note(id, act);
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.id;
    }
  }
}
