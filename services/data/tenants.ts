/**
 * This process's cache of tenants and their users: the snapshot, and each user's access computed from it. All
 * of it may be lost at any moment and may be stale at any moment: every statement on records returns the versions it
 * saw, and a request that finds other versions repeats with fresh ones.
 */

import { LRUCache } from 'lru-cache';
import type { Directory } from '../../lib/access/directory.ts';
import { accessFor } from '../../lib/access/rules.ts';
import type { Principal } from '../../lib/access/types.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { entryBound } from '../../lib/values/entry-bound.ts';
import { type Database, sqlState } from '../../mixins/database/database.ts';
import { CountedCache } from '../../mixins/metrics/counted-cache.ts';
import type { CacheNumbers } from '../../mixins/metrics/metrics.ts';
import type { SnapshotCache } from '../../mixins/snapshot-cache/snapshot-cache.ts';
import { findPrincipal, readDirectory, readVersions } from './tenants.sql.ts';
import type { Versions, View } from './view.ts';

/** A statement saw other versions than the view it was made for. */
class Stale extends Error {
  constructor() {
    super('The snapshot or the permissions have changed.');
  }
}

interface Tenant extends Versions {
  readonly snapshot: Snapshot;
  readonly directory: Directory;
  readonly views: LRUCache<string, View>;
}

/** Attempts at one pair of versions. */
const ATTEMPTS_MAX = 4;
/** How long a request follows a configuration that keeps changing under it. */
const MOVING_MAX_MS = 10_000;
/** Attempts to see a user, the snapshot and all users at one pair of versions. */
const LOADS_MAX = 10;
const VIEWS_PER_TENANT_MAX = 2_000;
const TENANTS_MAX = 20_000;
/** Approximate size of a user in a directory. */
const USER_BYTES = 250;
const TENANTS_MAX_BYTES = 256 * 1024 * 1024;

export class Tenants {
  readonly #database: Database;
  readonly #snapshots: SnapshotCache;
  readonly #tenants: CountedCache<string, Tenant>;
  /** Of databases that this process has seen, one the copy of the other: each gives the same versions. */
  #copies = 0;

  constructor(database: Database, snapshots: SnapshotCache) {
    this.#database = database;
    this.#snapshots = snapshots;
    this.#tenants = new CountedCache({
      max: TENANTS_MAX,
      maxSize: TENANTS_MAX_BYTES,
      sizeCalculation: (tenant) => snapshots.bytesOf(tenant.snapshot) + tenant.directory.users.length * USER_BYTES,
    });
  }

  /** Tenants with the views of their users, for metrics. */
  get numbers(): CacheNumbers {
    return this.#tenants;
  }

  /** The view of a user, from memory when it is there. 401 TOKEN_REVOKED when the user is gone or inactive. */
  async view(tenantId: string, userId: string): Promise<View> {
    return this.#known(tenantId, userId) ?? this.#load(tenantId, userId);
  }

  #known(tenantId: string, userId: string): View | undefined {
    return this.#tenants.get(tenantId)?.views.get(userId);
  }

  /**
   * Runs `work` with the user's view; when the work finds the view stale, again with a fresh one. A refusal counts only
   * when the view was still current: what was forbidden or absent a moment ago may be allowed and there by now.
   * `work` must have changed nothing when it throws.
   */
  async withView<T>(tenantId: string, userId: string, work: (view: View) => Promise<T>): Promise<T> {
    const until = performance.now() + MOVING_MAX_MS;
    let attempts = 0;
    let before: View | undefined;
    for (;;) {
      const view = this.#known(tenantId, userId) ?? (await this.#load(tenantId, userId));
      // A request that waits behind a row of deployments finds each of them; that is no failure as long as versions
      // move on.
      const moved = before?.metadataVersion !== view.metadataVersion || before.accessVersion !== view.accessVersion;
      attempts = moved ? 1 : attempts + 1;
      before = view;
      try {
        return await work(view);
      } catch (error) {
        const stale = isStale(error) || (error instanceof PlatformError && !(await this.#isCurrent(tenantId, view)));
        if (!stale) throw error;
        this.forget(tenantId);
        if (attempts < ATTEMPTS_MAX && performance.now() < until) continue;
        if (!(error instanceof Stale)) throw error;
        throw new PlatformError('WRITE_CONTENTION', "The tenant's configuration keeps changing; try again.", {
          retryAfterSeconds: 1,
        });
      }
    }
  }

  async #isCurrent(tenantId: string, view: View): Promise<boolean> {
    const { metadataVersion, accessVersion } = await this.versions(tenantId);
    return view.metadataVersion === metadataVersion && view.accessVersion === accessVersion;
  }

  /**
   * A tenant's snapshot for work that the platform does by itself; without `version` the current. null: no such tenant.
   */
  async snapshot(tenantId: string, version?: number): Promise<Snapshot | null> {
    return this.#snapshots.get(tenantId, version);
  }

  /** The same for all tenants, with their snapshots. */
  forgetAll(): void {
    this.#copies++;
    this.#tenants.clear();
    this.#snapshots.clear();
  }

  /** Drops what is remembered; the next request reads it again. */
  forget(tenantId: string): void {
    this.#tenants.delete(tenantId);
  }

  async #load(tenantId: string, userId: string): Promise<View> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#database.tenant(tenantId, (tx) => findPrincipal(tx, userId));
      if (!found.principal?.active)
        throw new PlatformError('TOKEN_REVOKED', 'The user of the token is no longer active.');
      const tenant = await this.#tenant(tenantId, found.versions);
      if (!tenant && attempt < LOADS_MAX) continue;
      if (!tenant)
        throw new PlatformError('SERVICE_UNAVAILABLE', 'The users of the tenant keep changing; try again.', {
          retryAfterSeconds: 1,
        });
      const view = viewOf(tenantId, tenant, found.principal, this.#copies);
      tenant.views.set(userId, view);
      return view;
    }
  }

  /** The tenant at these versions; null: they are superseded. */
  async #tenant(tenantId: string, versions: Versions): Promise<Tenant | null> {
    const known = this.#tenants.get(tenantId);
    if (known && same(known, versions)) return known;
    const [snapshot, people] = await Promise.all([
      this.#snapshots.get(tenantId, versions.metadataVersion),
      this.#database.tenant(tenantId, readDirectory),
    ]);
    if (!snapshot) throw new PlatformError('INTERNAL_ERROR', 'The configuration of the tenant is not available.');
    if (!people.versions || !same(people.versions, versions)) return null;
    const views = new LRUCache<string, View>(entryBound(VIEWS_PER_TENANT_MAX));
    const tenant: Tenant = { ...versions, snapshot, directory: people.directory, views };
    this.#tenants.set(tenantId, tenant);
    return tenant;
  }

  /** Versions as the database has them now. */
  versions(tenantId: string): Promise<Versions> {
    return this.#database.tenant(tenantId, readVersions);
  }
}

const same = (a: Versions, b: Versions): boolean =>
  a.metadataVersion === b.metadataVersion && a.accessVersion === b.accessVersion;

function viewOf(tenantId: string, tenant: Tenant, principal: Principal, copies: number): View {
  return {
    tenantId,
    metadataVersion: tenant.metadataVersion,
    accessVersion: tenant.accessVersion,
    snapshot: tenant.snapshot,
    access: accessFor(tenant.snapshot, principal, tenant.directory),
    key: `${tenantId} ${principal.userId} ${tenant.metadataVersion} ${tenant.accessVersion} ${copies}`,
  };
}

/** A table or column was not there, or a prepared statement no longer fits: what a deployment leaves behind. */
export const isShapeError = (error: unknown): boolean =>
  ['42P01', '42703', '42883', '0A000', '42804', '42P07'].includes(sqlState(error) ?? '');

/** The work must be repeated with a newer view. */
export const isStale = (error: unknown): boolean => error instanceof Stale || isShapeError(error);

/** The versions that a statement saw must be those its view was made from. */
export function assertFresh(view: Versions, metadataVersion: unknown, accessVersion: unknown): void {
  if (view.metadataVersion !== metadataVersion || view.accessVersion !== accessVersion) throw new Stale();
}
