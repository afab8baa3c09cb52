/**
 * The storage of oidc-provider, in PostgreSQL: any number of auth nodes share it, and none has anything to lose. Grants
 * are rows of a tenant; everything else is an artifact with an unguessable id. Clients come from
 * configuration.
 */
import { createHash } from 'node:crypto';
import { type Adapter, errors, Provider } from 'oidc-provider';
import { isSameAuthentication } from '../../../lib/access/client-marks.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { networkOf } from '../../../lib/values/network.ts';
import { type Clients, hasDocument } from '../clients.ts';
import type { SignIn } from '../store/artifacts.sql.ts';
import type { AuthStore } from '../store/store.ts';
import type { PresentedTokens } from './presented-tokens.ts';

/** How long a used refresh token may be sent again: the answer to its first use may have been lost. */
const REFRESH_REUSE_GRACE_SECONDS = 30;

/** Models whose ids are secrets by themselves: the database stores their SHA-256. */
const SECRET_IDS = new Set(['AuthorizationCode', 'RefreshToken', 'Session']);
/** Used up by the first request; of two at once, one must fail. */
const SINGLE_USE = new Set(['AuthorizationCode', 'DeviceCode', 'PushedAuthorizationRequest']);

/** Artifacts that a browser or a device creates before sign-in. */
const MADE_BY_ANYBODY = new Set(['Interaction', 'Session', 'DeviceCode', 'PushedAuthorizationRequest']);

export interface AdapterParts {
  store: AuthStore;
  clients: Clients;
  presentedTokens: PresentedTokens;
  grantsEnded(grantIds: string[]): void;
}

type Payload = Record<string, unknown>;

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** The network of the request that the provider answers now; the dispatcher has set its address. */
function callerNetwork(): string | null {
  const ip = Provider.ctx?.ip;
  return typeof ip === 'string' ? networkOf(ip) : null;
}

/** The id under which the database knows an artifact whose id is a secret. */
export const secretKey = (id: string): string => createHash('sha256').update(id).digest('base64url');

class ArtifactAdapter implements Adapter {
  readonly #model: string;
  readonly #store: AuthStore;

  constructor(model: string, store: AuthStore) {
    this.#model = model;
    this.#store = store;
  }

  async upsert(id: string, payload: Payload, expiresIn: number): Promise<void> {
    const { jti: _jti, storedAs, ...rest } = payload;
    const login = this.#model === 'Interaction' ? loginIn(payload) : null;
    const signIn = this.#model === 'Session' ? signInOf(payload) : login;
    const row = {
      model: this.#model,
      id: this.#key(id),
      payload: SECRET_IDS.has(this.#model) ? rest : payload,
      grantId: text(payload['grantId']),
      accountId: login?.userId ?? text(payload['accountId']),
      signIn,
      uid: this.#model === 'Session' ? text(payload['uid']) : null,
      userCode: text(payload['userCode']),
      network: MADE_BY_ANYBODY.has(this.#model) && payload['accountId'] === undefined ? callerNetwork() : null,
    };
    const isSingleUse = this.#model === 'ReplayDetection';
    const saved = await this.#store.artifacts.save(row, expiresIn, {
      replace: !isSingleUse,
      storedAs: text(storedAs),
    });
    // Two copies of one client assertion at the same moment: the provider has missed it, the database has not.
    // A session or login that is not saved has ended: the next request finds none, and the user signs in again.
    if (!saved && isSingleUse) throw new errors.InvalidClientAuth('client assertion tokens must only be used once');
  }

  async find(id: string): Promise<Payload | undefined> {
    return this.#found('id', this.#key(id), id);
  }

  async findByUid(uid: string): Promise<Payload | undefined> {
    return this.#found('uid', uid);
  }

  async findByUserCode(userCode: string): Promise<Payload | undefined> {
    return this.#found('user_code', userCode);
  }

  async consume(id: string): Promise<void> {
    const first = await this.#store.artifacts.consume(this.#model, this.#key(id));
    if (!first && SINGLE_USE.has(this.#model)) throw new errors.InvalidGrant('already used');
  }

  async destroy(id: string): Promise<void> {
    await this.#store.artifacts.delete(this.#model, this.#key(id));
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#store.artifacts.deleteOfGrant(this.#model, grantId);
  }

  #key(id: string): string {
    return SECRET_IDS.has(this.#model) ? secretKey(id) : id;
  }

  async #found(by: 'id' | 'uid' | 'user_code', value: string, id?: string): Promise<Payload | undefined> {
    const artifact = await this.#store.artifacts.find(this.#model, by, value);
    if (!artifact) return undefined;
    const { payload, consumedSecondsAgo, consumedAt } = artifact;
    if (id !== undefined) payload['jti'] = id;
    if (this.#model === 'Session') payload['storedAs'] = artifact.id;
    const grace = this.#model === 'RefreshToken' ? REFRESH_REUSE_GRACE_SECONDS : 0;
    if (consumedSecondsAgo !== null && consumedSecondsAgo >= grace) payload['consumed'] = consumedAt;
    return payload;
  }
}

/** Whose session, login or grant it is; null: of no user yet. */
function signInOf({ accountId, sessionGeneration }: Payload): SignIn | null {
  const userId = text(accountId);
  const generation = typeof sessionGeneration === 'number' ? sessionGeneration : null;
  return userId === null ? null : { userId, sessionGeneration: generation };
}

/** A sign-in that has not returned to its client yet: it ends with the user's sessions. */
const loginIn = ({ result }: Payload): SignIn | null => signInOf(membersOf(membersOf(result)['login']));

const nothing = async (): Promise<undefined> => undefined;

/** Grants: rows of the tenant whose user gave them. */
function grantAdapter({ store, clients, grantsEnded }: AdapterParts): Adapter {
  return {
    async upsert(id, payload, expiresIn) {
      const signIn = signInOf(payload);
      const credential = signIn && (await store.credentials.byUser(signIn.userId));
      if (!credential) throw new errors.InvalidGrant('account not found');
      const grant = { ...signIn, tenantId: credential.tenantId, id, clientId: String(payload['clientId']), payload };
      if (!(await store.grants.save(grant, expiresIn))) throw new errors.AccessDenied('the sign-in has ended');
    },
    async find(id) {
      const payload = await store.grants.payload(id);
      if (!payload) return undefined;
      const clientId = String(payload['clientId']);
      const user = hasDocument(clientId) ? await store.credentials.byUser(String(payload['accountId'])) : null;
      const client = await clients.find(clientId, user?.tenantId);
      const { authentication } = membersOf(payload['clientMarks']);
      return client && isSameAuthentication(text(authentication), client) ? payload : undefined;
    },
    async destroy(id) {
      if (await store.grants.end(id)) grantsEnded([id]);
    },
    findByUid: nothing,
    findByUserCode: nothing,
    consume: nothing,
    revokeByGrantId: nothing,
  };
}

/** The adapter for each model of the provider. */
export function adapters(issuer: string, parts: AdapterParts): (model: string) => Adapter {
  return (model) => {
    switch (model) {
      case 'Grant':
        return grantAdapter(parts);
      case 'Client':
        return { ...readOnly, find: (id) => parts.clients.metadata(id, issuer) };
      case 'AccessToken':
        // Access tokens are JWTs and stored nowhere; one that is introspected or revoked was verified on arrival.
        return { ...readOnly, find: async (id) => parts.presentedTokens.payload(id) };
      default:
        return new ArtifactAdapter(model, parts.store);
    }
  };
}

const readOnly: Adapter = {
  upsert: nothing,
  find: nothing,
  findByUid: nothing,
  findByUserCode: nothing,
  consume: nothing,
  destroy: nothing,
  revokeByGrantId: nothing,
};
