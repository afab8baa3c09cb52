/**
 * Tenants whose schema is of an older version than this process needs: during a roll-out, or after the restore of an
 * older backup, until `npm run migrate` or a process of metadata has brought them up to date. What lacks something
 * there is no bug, and passes. Looked at only when a statement has failed, so that nothing else pays for it.
 */

import { LRUCache } from 'lru-cache';
import type { ServiceBroker } from 'moleculer';
import { TENANT_SCHEMA_VERSION } from '../../contracts/metadata.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { entryBound } from '../../lib/values/entry-bound.ts';
import { type Database, sqlState } from '../../mixins/database/database.ts';
import { schemaVersionStatement } from './older-schema.sql.ts';

/** A table, column or function that is not there. */
const ABSENT: ReadonlySet<string | null> = new Set(['42P01', '42703', '42883']);

/** Tenants of which is remembered that they were logged. */
const LOGGED_MAX = 10_000;
const RETRY_AFTER_SECONDS = 5;

export class OlderSchemas {
  readonly #database: Database;
  readonly #log: ServiceBroker['logger'];
  readonly #logged = new LRUCache<string, true>(entryBound(LOGGED_MAX));

  constructor(database: Database, log: ServiceBroker['logger']) {
    this.#database = database;
    this.#log = log;
  }

  /** The error to answer instead of `error`: the same one unless the tenant's schema is the reason. */
  async explain(tenantId: string, error: unknown): Promise<unknown> {
    const cause = error instanceof PlatformError && error.code === 'INTERNAL_ERROR' ? error.cause : error;
    if (!ABSENT.has(sqlState(cause))) return error;
    // If the look-up fails, keep the original error.
    const version = await this.#version(tenantId).catch(() => null);
    if (version === null || version >= TENANT_SCHEMA_VERSION) return error;
    if (!this.#logged.has(tenantId)) {
      this.#logged.set(tenantId, true);
      this.#log.warn(
        { tenantId, version, needed: TENANT_SCHEMA_VERSION, err: cause },
        'The tables of a tenant are of an older version: some of its requests are answered with 503 until `npm run ' +
          'migrate`, or the start of a metadata process of this version, has brought them up to date.',
      );
    }
    return new PlatformError(
      'SERVICE_UNAVAILABLE',
      'The platform is being upgraded, and this part of it is not ready yet. Nothing was changed; try again later.',
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }

  async #version(tenantId: string): Promise<number | null> {
    const statement = schemaVersionStatement(tenantId);
    const { version } = await this.#database.shared('data', null, (tx) =>
      tx.one<{ version: number | null }>(statement),
    );
    return version;
  }
}
