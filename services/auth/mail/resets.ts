/**
 * Forgotten passwords. The page only keeps what was typed, in the same statement for every name, so that neither its
 * answer nor its time says whether there is such a user; a moment later a process looks, and puts a mail into the outbox.
 */
import { randomUUID } from 'node:crypto';
import type { Database } from '../../../mixins/database/database.ts';
import type { Clients } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import { passwordRequested } from '../store/entries.ts';
import { browserOrigin, networkOrigin } from '../store/known-origins.ts';
import type { AuthStore } from '../store/store.ts';
import { typedName } from '../usernames.ts';
import type { Kept, Vault } from '../vault.ts';
import type { Outbox } from './outbox.ts';
import { deleteReset, insertReset, takeResets } from './resets.sql.ts';

const AT_A_TIME = 10;
const LEASE_SECONDS = 60;

export interface ResetRequest {
  /** As it was typed. */
  readonly username: string;
  /** Of the sign-in from which the page was opened: a client of one tenant means its users. */
  readonly clientId: string | null;
  /** By which the browser is known; null: it is not. */
  readonly browser: string | null;
  readonly address: string;
}

const requestOf = ({ username, clientId, browser, address }: Record<string, unknown>): ResetRequest => ({
  username: String(username),
  clientId: clientId === null ? null : String(clientId),
  browser: browser === null ? null : String(browser),
  address: String(address),
});

interface TakenReset extends Kept {
  readonly id: string;
  readonly stale: boolean;
}

interface ResetParts {
  readonly database: Database;
  readonly store: AuthStore;
  readonly clients: Clients;
  readonly vault: Vault;
  readonly outbox: Outbox;
  mayHavePassword(user: Pick<Credential, 'tenantId' | 'userId' | 'username'>): Promise<boolean>;
}

export class Resets {
  readonly #parts: ResetParts;

  constructor(parts: ResetParts) {
    this.#parts = parts;
  }

  /** Keeps a request; false when too many wait. */
  async add({ username, clientId, browser, address }: ResetRequest): Promise<boolean> {
    const { vault, database } = this.#parts;
    const id = randomUUID();
    const kept = vault.seal(id, { username, clientId, browser, address });
    return (await database.query(insertReset(id, kept))).rowCount > 0;
  }

  /** Looks at what waits. What keeps it from one of them is thrown at the end; that one is looked at again. */
  async work(): Promise<void> {
    const { database } = this.#parts;
    const failures: unknown[] = [];
    for (;;) {
      const { rows } = await database.query<TakenReset>(takeResets(AT_A_TIME, LEASE_SECONDS));
      for (const reset of rows) await this.#settle(reset).catch((error: unknown) => failures.push(error));
      if (rows.length < AT_A_TIME) break;
    }
    if (failures.length > 0) throw failures[0];
  }

  async #settle(reset: TakenReset): Promise<void> {
    const { database, outbox, store } = this.#parts;
    const user = reset.stale ? null : await this.#userOf(reset);
    if (user === null) {
      await database.query(deleteReset(reset.id));
      return;
    }
    const { tenantId, userId, email } = user;
    await store.trail.change(tenantId, async (tx, note) => {
      if (!(await tx.first(deleteReset(reset.id)))) return;
      const outcome = await outbox.add(tx, { tenantId, userId, kind: 'passwordReset', address: email });
      if (outcome === 'queued') await note(passwordRequested(userId));
    });
  }

  /** The user of the typed name, as on the sign-in page; null: no user who may have a new password. */
  async #userOf({ id, plain, sealed }: TakenReset) {
    const { vault, clients, store, mayHavePassword } = this.#parts;
    const { username, clientId, browser, address } = requestOf(vault.open(id, { plain, sealed }));
    const name = await typedName(clients, username);
    const client = clientId === null ? null : await clients.find(clientId);
    const { credential } = await store.credentials.forSignIn({
      ...name,
      tenantId: name.tenantId ?? client?.tenantId ?? null,
      browser: browser === null ? null : browserOrigin(browser),
      network: networkOrigin(address),
    });
    if (!credential?.active) return null;
    return (await mayHavePassword(credential)) ? credential : null;
  }
}
