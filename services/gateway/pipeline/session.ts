/**
 * Sessions of callers: access tokens (RFC 9068) are verified once and then remembered by their SHA-256 until they expire;
 * whether the grant behind one still lives, and what its user may do as a whole, is believed for five seconds. While auth
 * is away, grants that it has confirmed before are confirmed by data instead, for a bounded time.
 */

import { hash } from 'node:crypto';
import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import type { GrantState } from '../../../contracts/auth.ts';
import { MCP_PATH } from '../../../contracts/mcp.ts';
import { apiUrl } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import { CountedCache } from '../../../mixins/metrics/counted-cache.ts';
import type { CacheNumbers, Metrics } from '../../../mixins/metrics/metrics.ts';
import { isServiceUnavailable } from '../../../mixins/service-unavailable.ts';
import type { Connection } from './budget.ts';
import { type Session, Tokens } from './tokens.ts';

/** Endpoints of callers. */
export type Door = 'api' | 'mcp' | 'scim' | 'documents' | 'pages';

interface GrantOfSession {
  readonly tenantId: string;
  readonly grantId: string;
  readonly clientId: string;
  readonly userId: string;
}

interface SessionSources {
  keys: () => Promise<{ keys: Record<string, unknown>[] }>;
  grants: (grants: GrantOfSession[]) => Promise<readonly GrantState[]>;
  /** The ids of the grants that live, by data, which does not know the rest of their state. */
  living: (grants: GrantOfSession[]) => Promise<readonly string[]>;
  users: (tenantId: string, userId: string) => Promise<UserRights>;
  /** Asks auth the same without counting as a use of the grants. */
  look: (grants: GrantOfSession[]) => Promise<unknown>;
  /** Called when auth stops answering, and when it answers again. */
  authChanged: (away: Error | null) => void;
}

/** Rights of a session's user as known to the gateway. */
export interface UserRights {
  /** The user exists, is active and may use the API. */
  readonly apiEnabled: boolean;
  readonly systemPermissions: ReadonlySet<string>;
}

const TOKEN_MAX_CHARS = 8_192;
/** Idle gateways don't poll auth. */
const AWAY_KNOWN_MS = 30_000;

/** The last accepted Authorization header of a connection and the hash of its token: each is hashed once. */
export interface Bearer {
  authorization: string;
  key: string;
}

/** The token of an Authorization header. */
function tokenOf(authorization: string): string {
  if (authorization.slice(0, 7).toLowerCase().trimEnd() !== 'bearer')
    throw new PlatformError('TOKEN_MISSING', 'The authorization scheme must be Bearer.');
  const token = authorization.slice(7).trim();
  if (!token)
    throw new PlatformError('TOKEN_MISSING', 'The Authorization header has no token: send Bearer <access token>.');
  if (token.length > TOKEN_MAX_CHARS) throw new PlatformError('TOKEN_INVALID', 'The access token is not well formed.');
  return token;
}

export class Sessions {
  readonly #tokens: Tokens;
  readonly #audiences: Readonly<Record<'api' | 'mcp', string>>;
  readonly #sources: SessionSources;
  readonly #sessions = new CountedCache<string, Session>({ max: 20_000 });
  readonly #grants: RefreshingCache<Session, GrantState>;
  readonly #users: RefreshingCache<Session, UserRights>;
  /** Grants that ended: final, so the event always wins over an answer that was under way. */
  readonly #revoked = new LRUCache<string, true>({ ...entryBound(100_000), ttl: 2 * 3_600_000 });
  /** Auth's last answer about a live grant, and its time. */
  readonly #confirmed = new LRUCache<string, { state: GrantState; at: number }>(entryBound(50_000));
  /** When auth was last found not to answer, and about what; null: it answers. */
  #authAway: { foundAt: number; about: Session } | null = null;
  #askingAgain = false;

  constructor(baseUrl: string, sources: SessionSources) {
    this.#tokens = new Tokens(baseUrl, () => sources.keys());
    this.#audiences = { api: apiUrl(baseUrl), mcp: `${baseUrl}${MCP_PATH}` };
    this.#sources = sources;
    // The questions of one turn of the event loop travel as one call; RefreshingCache keeps the answers.
    const grants = new DataLoader((sessions: readonly Session[]) => this.#checkGrants(sessions), {
      cache: false,
      batchScheduleFn: setImmediate,
    });
    this.#grants = new RefreshingCache((session) => grants.load(session));
    this.#users = new RefreshingCache(({ tenantId, userId }) => sources.users(tenantId, userId));
  }

  /** Adds the numbers of its caches to those of the process. */
  register(metrics: Metrics): void {
    metrics.cache('gateway', 'sessions', this.#sessions);
    metrics.cache('gateway', 'grants', this.#grants);
    metrics.cache('gateway', 'users', this.#users);
  }

  /** Time of the last unanswered question about grants, on the clock of `performance.now()`; null: none lately. */
  get authAwayAt(): number | null {
    const foundAt = this.#authAway?.foundAt ?? Number.NEGATIVE_INFINITY;
    return performance.now() - foundAt < AWAY_KNOWN_MS ? foundAt : null;
  }

  /** Asks an unresponsive auth once more: without requests its return would go unnoticed. */
  async askAuthAgain(): Promise<void> {
    const { about } = this.#authAway ?? {};
    if (!about || this.#askingAgain) return;
    this.#askingAgain = true;
    try {
      await this.#sources.look([grantOf(about)]);
      this.#noteAuth(null, about);
    } catch (error) {
      if (error instanceof Error && isAway(error)) this.#noteAuth(error, about);
    } finally {
      this.#askingAgain = false;
    }
  }

  /**
   * The session of an Authorization header. Throws TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_AUDIENCE_INVALID.
   */
  open(
    authorization: string | undefined,
    now: number,
    door: Door = 'api',
    bearer: Bearer = { authorization: '', key: '' },
  ): Session | Promise<Session> {
    if (authorization === undefined || authorization === '')
      throw new PlatformError('TOKEN_MISSING', 'Send an access token: Authorization: Bearer <token>.');
    const key = authorization === bearer.authorization ? bearer.key : hash('sha256', tokenOf(authorization), 'base64');
    const known = this.#sessions.get(key);
    if (known) {
      bearer.authorization = authorization;
      bearer.key = key;
      if (known.expiresAt <= now) throw new PlatformError('TOKEN_EXPIRED', 'The access token has expired.');
      return this.#meantFor(door, known);
    }
    return this.#tokens.verify(tokenOf(authorization), now).then((session) => {
      // A token for something else altogether is not worth a place.
      const checked = this.#meantFor(door, session);
      this.#sessions.set(key, session);
      return checked;
    });
  }

  #meantFor(door: Door, session: Session): Session {
    // Provisioning takes the tokens of the API.
    const audience = this.#audiences[door === 'mcp' ? 'mcp' : 'api'];
    if (session.audience.includes(audience)) return session;
    throw new PlatformError('TOKEN_AUDIENCE_INVALID', `The access token is not meant for ${audience}.`);
  }

  /** The connection of a token that was used here before; null for every other, and when its grant has ended. */
  connectionOf(authorization: string | undefined): Connection | null {
    if (authorization?.slice(0, 7).toLowerCase() !== 'bearer ' || authorization.length > TOKEN_MAX_CHARS) return null;
    const known = this.#sessions.get(hash('sha256', authorization.slice(7).trim(), 'base64'));
    return known && known.expiresAt > platformTime() && !this.#revoked.has(known.grantId) ? known.connection : null;
  }

  /** Liveness of the grant; a promise only when it has to be asked for. */
  grant(session: Session): GrantState | Promise<GrantState> {
    if (this.#revoked.has(session.grantId)) return { ...UNKNOWN_GRANT, grantId: session.grantId };
    const state = this.#grants.get(session.grantId, session);
    return state instanceof Promise
      ? state.then((value) =>
          this.#revoked.has(session.grantId) ? { ...UNKNOWN_GRANT, grantId: session.grantId } : value,
        )
      : state;
  }

  /** The user's rights; up to five seconds old. */
  user(session: Session): UserRights | Promise<UserRights> {
    return this.#users.get(userKey(session), session);
  }

  /** The same as it is now: a permission that was given a moment ago counts. */
  async currentUser(session: Session): Promise<UserRights> {
    return this.#users.renew(userKey(session), session);
  }

  /** Event: these grants ended. */
  revoke(grantIds: readonly string[]): void {
    for (const id of grantIds) {
      this.#revoked.set(id, true);
      this.#grants.drop(id);
    }
  }

  /** Event: what auth says about the grants of this tenant may be something else now; they are asked for again. */
  forgetTenant(tenantId: string): void {
    for (const session of this.#sessions.values())
      if (session.tenantId === tenantId) this.#grants.drop(session.grantId);
  }

  /** Event: the signing keys changed. */
  async rotateKeys(): Promise<void> {
    await this.#tokens.fetchKeys();
  }

  async #checkGrants(sessions: readonly Session[]): Promise<(GrantState | Error)[]> {
    const at = performance.now();
    let states: readonly GrantState[];
    try {
      states = await this.#sources.grants(sessions.map(grantOf));
    } catch (error) {
      if (!(error instanceof Error) || !isAway(error)) throw error;
      this.#noteAuth(error, sessions[0]!);
      return this.#rememberedGrants(sessions, error);
    }
    this.#noteAuth(null, sessions[0]!);
    const byId = new Map(states.map((state) => [state.grantId, state]));
    return sessions.map(({ grantId }) => {
      const state = byId.get(grantId);
      if (state?.active) this.#confirmed.set(grantId, { state, at });
      else this.#confirmed.delete(grantId);
      return state ?? { ...UNKNOWN_GRANT, grantId };
    });
  }

  #noteAuth(away: Error | null, about: Session): void {
    const changed = (this.#authAway === null) !== (away === null);
    this.#authAway = away ? { foundAt: performance.now(), about } : null;
    if (changed) this.#sources.authChanged(away);
  }

  /** As auth knew them, those that live; `away` for what it has not confirmed for too long. */
  async #rememberedGrants(sessions: readonly Session[], away: Error): Promise<(GrantState | Error)[]> {
    const earliest = performance.now() - LIMITS.auth_absence_seconds * 1_000;
    const remembered = new Map<Session, GrantState>();
    for (const session of sessions) {
      const confirmed = this.#confirmed.get(session.grantId);
      if (confirmed && confirmed.at >= earliest) remembered.set(session, confirmed.state);
    }
    if (remembered.size === 0) throw away;
    const living = new Set(await this.#sources.living([...remembered.keys()].map(grantOf)));
    return sessions.map((session) => {
      const state = remembered.get(session);
      if (!state) return away;
      return living.has(session.grantId) ? state : { ...UNKNOWN_GRANT, grantId: session.grantId };
    });
  }
}

const grantOf = ({ tenantId, grantId, clientId, userId }: Session): GrantOfSession => ({
  tenantId,
  grantId,
  clientId,
  userId,
});

/** No process of auth answers, or its database does not. */
const isAway = (error: Error): boolean =>
  isServiceUnavailable(error) || (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE');

/** The client is flagged as an agent, or its token was given to one. */
export const isAgent = ({ grant, actor }: Session): boolean => grant?.agent === true || actor;

const userKey = ({ tenantId, userId }: Session): string => `${tenantId}:${userId}`;

const UNKNOWN_GRANT: GrantState = {
  grantId: '',
  active: false,
  tenantSuspended: false,
  clientActive: true,
  clientName: '',
  agent: false,
  stepUp: false,
  ipRanges: [],
  rateLimits: {
    client: { connection: null, concurrency: null },
    tenant: { connection: null, tenant: null, daily: null, concurrency: null },
  },
};

/** A value is used this long after it was asked for. */
const MAX_AGE_MS = 5_000;
const REFRESH_MS = 2_500;

interface Entry<V> {
  value: V | undefined;
  askedAt: number;
  pending: Promise<V> | null;
}

/**
 * Answers of other services that the gateway uses for a few seconds. An entry past its age is never used; one that is
 * getting old is read again in the background, so that steady traffic does not wait. docs/decisions/
 * libraries-off-the-hot-path.md says why this is not lru-cache's `fetchMethod`.
 */
class RefreshingCache<Q, V extends object> implements CacheNumbers {
  /** Totals since the start. */
  hits = 0;
  misses = 0;
  evictions = 0;
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #load: (question: Q) => Promise<V>;
  readonly #now: () => number;

  constructor(load: (question: Q) => Promise<V>, options: { max?: number; now?: () => number } = {}) {
    this.#load = load;
    this.#entries = new LRUCache({
      ...entryBound(options.max ?? 50_000),
      dispose: (_value, _key, reason) => {
        if (reason === 'evict') this.evictions++;
      },
    });
    this.#now = options.now ?? (() => performance.now());
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value at once when it is fresh, a promise when it has to be asked for. */
  get(key: string, question: Q): V | Promise<V> {
    const entry = this.#entries.get(key);
    if (entry?.value !== undefined) {
      const age = this.#now() - entry.askedAt;
      if (age < MAX_AGE_MS) {
        if (age > REFRESH_MS && !entry.pending) this.#ask(key, entry, question).catch(() => {});
        this.hits++;
        return entry.value;
      }
    }
    this.misses++;
    if (entry?.pending) return entry.pending;
    const fresh = entry ?? { value: undefined, askedAt: 0, pending: null };
    if (!entry) this.#entries.set(key, fresh);
    return this.#ask(key, fresh, question);
  }

  /** The value as it is now. Callers that ask at the same time share one question. */
  renew(key: string, question: Q): Promise<V> {
    const entry = this.#entries.get(key) ?? { value: undefined, askedAt: 0, pending: null };
    this.#entries.set(key, entry);
    return entry.pending ?? this.#ask(key, entry, question);
  }

  /** Forgets the entry: the next request asks again, and an answer under way is not stored. */
  drop(key: string): void {
    this.#entries.delete(key);
  }

  #ask(key: string, entry: Entry<V>, question: Q): Promise<V> {
    const askedAt = this.#now();
    const pending = this.#load(question).then(
      (value) => {
        entry.value = value;
        entry.askedAt = askedAt;
        entry.pending = null;
        return value;
      },
      (error) => {
        entry.pending = null;
        if (entry.value === undefined && this.#entries.get(key) === entry) this.#entries.delete(key);
        throw error;
      },
    );
    entry.pending = pending;
    return pending;
  }
}
