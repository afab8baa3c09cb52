/** Public operations and internal actions of auth. */
import type { Operation } from '../../lib/operation.ts';

export interface HttpRequest {
  method: string;
  /** Path and query as received, such as `/oauth2/token`. */
  url: string;
  headers: Record<string, string | string[]>;
  body: Buffer | null;
  remoteAddress: string;
}

export interface HttpReply {
  status: number;
  headers: Record<string, string | string[]>;
  body: Buffer;
}

/** Everything the gateway must know about a grant, besides what the access token itself says. */
export interface GrantState {
  grantId: string;
  active: boolean;
  tenantSuspended: boolean;
  clientActive: boolean;
  clientName: string;
  agent: boolean;
  ipRanges: string[];
  /** Rate limits that differ from the deployment's defaults. */
  rateLimits: {
    client: { connection: number | null; concurrency: number | null };
    tenant: { connection: number | null; tenant: number | null; daily: number | null; concurrency: number | null };
  };
}

export interface AuthActions {
  /** Answers an HTTP request for /oauth2/*, /.well-known/*, /device and the sign-in pages. */
  'auth.http.handle': { params: HttpRequest; result: HttpReply };
  /** Public signing keys (JWKS). Rotated keys stay listed until the last token they signed has expired. */
  'auth.keys.list': { params: Record<string, never>; result: { keys: Record<string, unknown>[] } };
  /** Liveness of grants; unknown ids come back inactive. */
  'auth.grants.check': {
    params: { grants: { tenantId: string; grantId: string; clientId: string; userId: string }[] };
    result: GrantState[];
  };
  /** Browser origins that any active client lists; for CORS preflight, which carries no token. */
  'auth.origins.check': { params: { origin: string; clientId?: string }; result: { allowed: boolean } };
  /**
   * Creates or updates the credentials of User records (username, active); idempotent. Without `password` a
   * single-use set-password link is made and sent (development: logged).
   */
  'auth.users.sync': {
    params: {
      tenantId: string;
      users: { userId: string; username: string; email: string; active: boolean; password?: string }[];
    };
    result: { synced: number };
  };
  /** Ends every grant of a user, at once. */
  'auth.users.revoke': { params: { tenantId: string; userId: string }; result: { revoked: number } };
}

/** Broadcast events: `auth.grants.revoked` the moment grants end, `auth.keys.rotated` with a new signing key. */
export interface AuthEvents {
  'auth.grants.revoked': { grantIds: string[] };
  'auth.keys.rotated': Record<string, never>;
}

export const AUTH_OPERATIONS: readonly Operation[] = [];
