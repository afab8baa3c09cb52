/** Public operations and internal actions of ratelimit. */
import type { Operation } from '../../lib/operation.ts';

export interface LeaseRequest {
  /** Counter, such as `connection:<tenant>:<client>:<user>`, `tenant:<tenant>`, `daily:<tenant>`, `anonymous:<ip>`. */
  key: string;
  /** Units per window that the policy allows. */
  limit: number;
  windowSeconds: number;
  /** Units wanted; 0 asks for the state only. */
  units: number;
  /** Unused units of an earlier lease that go back. */
  returned?: number;
}

export interface Lease {
  key: string;
  granted: number;
  /** Units left at the owner after this grant. */
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until at least one unit is free; 0 when granted. */
  retryAfterSeconds: number;
}

export interface RatelimitActions {
  'ratelimit.leases.take': { params: { gateway: string; requests: LeaseRequest[] }; result: Lease[] };
}

export const RATELIMIT_OPERATIONS: readonly Operation[] = [];
