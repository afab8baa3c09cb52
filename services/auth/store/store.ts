/**
 * Everything that auth stores. Work for a known tenant runs as svc_auth under row-level security (`shared`). Only what
 * has to find the tenant first (a username, a grant's id, a link's token, the artifacts of the protocol) runs as the
 * login role (`login`, `query`), and each of these reads exactly one row by a unique key.
 */
import { DEPRECATED_USE_DAYS } from '../../../contracts/auth.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { DELETE_ENDED_MAILS } from '../mail/outbox.sql.ts';
import { Addresses } from './addresses.ts';
import { Artifacts } from './artifacts.ts';
import { Attempts } from './attempts.ts';
import { AuditEntries, type EntrySender } from './audit-entries.ts';
import { CalendarLinks } from './calendar-links.ts';
import { ClientSecrets } from './client-secrets.ts';
import { Credentials } from './credentials.ts';
import { DeprecatedUses } from './deprecated-uses.ts';
import { Domains } from './domains.ts';
import { Factors } from './factors.ts';
import { Grants } from './grants.ts';
import { Identities } from './identities.ts';
import { StoredKeys } from './keys.ts';
import { KnownOrigins } from './known-origins.ts';
import { Origins } from './origins.ts';
import { ProviderSecrets } from './provider-secrets.ts';

const DELETE_EXPIRED = [
  'DELETE FROM auth.grants WHERE expires_at < now()',
  'DELETE FROM auth.password_links WHERE expires_at < now()',
  'DELETE FROM auth.address_links WHERE expires_at < now()',
  DELETE_ENDED_MAILS,
  // After an hour the count begins anew.
  "DELETE FROM auth.attempts WHERE updated_at < now() - interval '1 hour' AND blocked_until < now()",
  "DELETE FROM auth.known_origins WHERE last_used_at < now() - interval '180 days'",
  `DELETE FROM auth.deprecated_uses WHERE day <= current_date - ${DEPRECATED_USE_DAYS}`,
];

export class AuthStore {
  readonly trail: AuditEntries;
  readonly credentials: Credentials;
  readonly addresses: Addresses;
  readonly attempts: Attempts;
  readonly calendarLinks: CalendarLinks;
  readonly factors: Factors;
  readonly grants: Grants;
  readonly artifacts: Artifacts;
  readonly clientSecrets: ClientSecrets;
  readonly origins: Origins;
  readonly keys: StoredKeys;
  readonly knownOrigins: KnownOrigins;
  readonly domains: Domains;
  readonly identities: Identities;
  readonly providerSecrets: ProviderSecrets;
  readonly deprecatedUses: DeprecatedUses;
  readonly #database: Database;

  constructor(database: Database, sender: EntrySender | null = null) {
    const trail = new AuditEntries(database, sender);
    this.trail = trail;
    this.credentials = new Credentials(database, trail);
    this.addresses = new Addresses(database, trail);
    this.attempts = new Attempts(database);
    this.calendarLinks = new CalendarLinks(database, trail);
    this.factors = new Factors(database, trail);
    this.grants = new Grants(database, trail);
    this.artifacts = new Artifacts(database);
    this.clientSecrets = new ClientSecrets(database, trail);
    this.origins = new Origins(database);
    this.keys = new StoredKeys(database);
    this.knownOrigins = new KnownOrigins(database);
    this.domains = new Domains(database, trail);
    this.identities = new Identities(database, trail);
    this.providerSecrets = new ProviderSecrets(database, trail);
    this.deprecatedUses = new DeprecatedUses(database);
    this.#database = database;
  }

  /** Removes what has expired. */
  async deleteExpired(): Promise<void> {
    await this.artifacts.deleteExpired();
    for (const statement of DELETE_EXPIRED) await this.#database.query(statement);
  }
}
