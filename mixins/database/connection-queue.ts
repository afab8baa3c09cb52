/**
 * Admission to the pool: the connections of one tenant are capped, and a part of the pool is kept for the platform's own
 * work. Source: docs/decisions/connections-per-tenant.md.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { FairQueue, type Holder } from '../fair-queue.ts';

interface ConnectionLimits {
  /** Connections of the pool. */
  readonly size: number;
  /** Connections that the records of one tenant may hold at a time. */
  readonly perTenant: number;
}

/** Requests of one holder that may wait at a time. */
export const WAITING_MAX = 500;
/** Maximum wait of a request. */
const WAIT_MAX_MS = 5_000;
/** The same for the platform's own work: people who sign in in great numbers rather wait. */
const PLATFORM_WAIT_MAX_MS = 10_000;

/** The platform's own work, which belongs to no tenant. */
export const PLATFORM: Holder = { key: 'platform', usesReserve: true };

/** Connections that are kept for the platform's own work. */
const reservedOf = (size: number): number => (size >= 4 ? Math.ceil(size / 5) : size > 1 ? 1 : 0);

export class ConnectionQueue extends FairQueue {
  /** Connections of the pool at most. */
  readonly size: number;
  readonly #perTenant: number;
  readonly #perShared: number;

  constructor({ size, perTenant }: ConnectionLimits) {
    const reserved = reservedOf(size);
    super({ places: size, reserved, waitingPerHolder: WAITING_MAX }, ({ holdsAll }, { max }) =>
      holdsAll
        ? new PlatformError(
            'CONCURRENCY_LIMIT_EXCEEDED',
            `The tenant's requests already hold all ${max} database connections that it may use at a time.`,
            { details: { max }, retryAfterSeconds: 1 },
          )
        : new PlatformError('SERVICE_UNAVAILABLE', 'All database connections are in use. Try again.', {
            retryAfterSeconds: 1,
          }),
    );
    this.size = size;
    this.#perTenant = Math.min(perTenant, size - reserved);
    this.#perShared = Math.min(size, Math.max(2, Math.floor(this.#perTenant / 2)));
  }

  /** Work on the records of a tenant. */
  tenant(key: string): Holder {
    return { key, max: this.#perTenant };
  }

  /** Work of a service for a tenant, which goes on while the tenant's records have used up their share. */
  shared(key: string): Holder {
    return { key, max: this.#perShared, usesReserve: true };
  }

  override enter(holder: Holder, waitMs = Number.POSITIVE_INFINITY): Promise<void> | undefined {
    return super.enter(holder, Math.min(waitMs, holder.usesReserve ? PLATFORM_WAIT_MAX_MS : WAIT_MAX_MS));
  }
}
