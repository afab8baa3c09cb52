/**
 * OAuth clients: the built-in ones of every tenant, and the external client applications that each tenant's
 * configuration declares. auth adds only what configuration must not hold, the hashes of secrets.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  ACCOUNT_CLIENT_ID,
  APP_CLIENTS,
  CLI_CLIENT_ID,
  REFERENCE_CLIENT_ID,
  REFERENCE_SCOPES,
} from '../../contracts/auth.ts';
import { REFERENCE_PATH } from '../../lib/addresses.ts';
import { IDENTITY_SCOPES, SCOPES } from '../../lib/operation.ts';
import { isNativeRedirect, isPrivateScheme } from '../../lib/redirect-uris.ts';
import {
  type ExternalClientMeta,
  type IdentityProviderMeta,
  type RateLimitOverrides,
  resourcesOf,
  type SecondFactorPolicy,
  type Snapshot,
  type TenantInfo,
} from '../../lib/schema/snapshot.ts';
import { CountedCache } from '../../mixins/metrics/counted-cache.ts';
import type { Metrics } from '../../mixins/metrics/metrics.ts';
import type { AuthStore } from './store/store.ts';

/** Of the API. */
export const ALL_SCOPES = Object.keys(SCOPES);
export const IDENTITY_SCOPE_NAMES: readonly string[] = Object.keys(IDENTITY_SCOPES);
export const ACCOUNT_PATH = '/account';

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const GRANT_TYPES: Record<string, string> = {
  authorization_code: 'authorization_code',
  refresh_token: 'refresh_token',
  device_code: DEVICE_CODE,
  [DEVICE_CODE]: DEVICE_CODE,
  client_credentials: 'client_credentials',
};

export type Tenant = TenantInfo & {
  suspended: boolean;
  metadataVersion: number;
  operatorLimits: RateLimitOverrides;
};

/** Tenants and their configuration, from the metadata service. */
export interface TenantSource {
  tenant(by: { tenantId: string } | { key: string }): Promise<Tenant | null>;
  tenants(after: string | undefined, take: number): Promise<Tenant[]>;
  snapshot(tenantId: string, version: number): Promise<Snapshot | null>;
}

interface CommonClient {
  clientId: string;
  name: string;
  active: boolean;
}

/** Of the platform, for users of every tenant. */
interface BuiltInClient extends CommonClient {
  tenantId: null;
  meta: null;
}

/** Declared by the configuration of a tenant, for its users alone. */
interface ExternalClient extends CommonClient {
  tenantId: string;
  meta: ExternalClientMeta;
}

/** Described by a document at its id, which clients of one tenant or several name; who may use it shows at the sign-in. */
interface DocumentClient extends CommonClient {
  tenantId: null;
  meta: null;
  document: true;
}

export type KnownClient = BuiltInClient | ExternalClient | DocumentClient;

const DOCUMENT_ADDRESS_MAX_CHARS = 255;

/** True for a client identified by the URL of its metadata document. */
export const hasDocument = (clientId: string): boolean => clientId.startsWith('https://');

const CLI: BuiltInClient = {
  clientId: CLI_CLIENT_ID,
  name: 'ERP command line',
  active: true,
  tenantId: null,
  meta: null,
};

const BUILT_IN: readonly BuiltInClient[] = [
  CLI,
  { ...CLI, clientId: ACCOUNT_CLIENT_ID, name: 'your account' },
  ...APP_CLIENTS.map(({ clientId, title }) => ({ ...CLI, clientId, name: `your ${title.toLowerCase()}` })),
];
const REFERENCE: BuiltInClient = { ...CLI, clientId: REFERENCE_CLIENT_ID, name: 'API reference' };

export interface ClientsOptions {
  /** People may sign in to the API reference. */
  readonly referenceSignIn: boolean;
}

/** Of a token that may do nearly everything, in a page that is left open. */
const REFERENCE_TOKEN_SECONDS = 900;
/** How long a tenant is not read again; every request of a sign-in needs it several times. */
const TENANT_FRESH_MS = 1_000;
/** How long tenants and clients are still known while the metadata service is away. */
const LAST_KNOWN_MS = 10 * 60_000;
const ORIGIN_FRESH_MS = 5_000;
const TENANTS_PAGE = 200;

/** The part of a tenant's configuration that auth uses. */
interface Configuration {
  version: number;
  clients: Map<string, ExternalClientMeta>;
  secondFactor: SecondFactorPolicy | null;
  identityProviders: readonly IdentityProviderMeta[];
}

/** Of a version that is no longer stored: no new sign-ins, and present grants stay. */
const UNKNOWN: Configuration = { version: -1, clients: new Map(), secondFactor: null, identityProviders: [] };

export class Clients {
  readonly #store: AuthStore;
  readonly #source: TenantSource;
  readonly #builtIn: ReadonlyMap<string, BuiltInClient>;
  readonly #tenants = new CountedCache<string, { tenant: Tenant | null }>({ max: 5_000, ttl: TENANT_FRESH_MS });
  readonly #lastKnown = new LRUCache<string, Tenant>({ max: 5_000, ttl: LAST_KNOWN_MS });
  readonly #configurations = new CountedCache<string, Configuration>({ max: 5_000 });
  readonly #origins = new LRUCache<string, boolean>({ max: 1_000, ttl: ORIGIN_FRESH_MS });
  readonly #documents = new LRUCache<string, boolean>({ max: 1_000, ttl: ORIGIN_FRESH_MS });

  constructor(store: AuthStore, source: TenantSource, { referenceSignIn }: ClientsOptions) {
    const builtIn = referenceSignIn ? [...BUILT_IN, REFERENCE] : BUILT_IN;
    this.#builtIn = new Map(builtIn.map((client) => [client.clientId, client]));
    this.#store = store;
    this.#source = source;
  }

  /** Adds the numbers of its caches to those of the process. */
  register(metrics: Metrics): void {
    metrics.cache('auth', 'tenants', this.#tenants);
    metrics.cache('auth', 'configurations', this.#configurations);
  }

  async tenant(by: { tenantId: string } | { key: string }): Promise<Tenant | null> {
    const key = 'key' in by ? by.key : by.tenantId;
    const known = this.#tenants.get(key);
    if (known) return known.tenant;
    try {
      const tenant = await this.#source.tenant(by);
      this.#tenants.set(key, { tenant });
      if (tenant) this.#lastKnown.set(key, tenant);
      else this.#lastKnown.delete(key);
      return tenant;
    } catch (error) {
      // While metadata is away, tenants that were known a moment ago stay known.
      const last = this.#lastKnown.get(key);
      if (last) return last;
      throw error;
    }
  }

  /** True when an operator has suspended the tenant, or it is being deleted. */
  async isSuspended(tenantId: string): Promise<boolean> {
    return (await this.tenant({ tenantId }))?.suspended === true;
  }

  /** A deployment may have changed the tenant's clients, or an operator the tenant. */
  forget(tenantId: string): void {
    this.#tenants.delete(tenantId);
    for (const [key, { tenant }] of this.#tenants.entries()) if (tenant?.id === tenantId) this.#tenants.delete(key);
  }

  /** The cache belongs to another database, whose versions have other content. */
  forgetAll(): void {
    for (const known of [this.#tenants, this.#lastKnown, this.#configurations, this.#origins, this.#documents])
      known.clear();
  }

  /** `tenantId`: of the user; without one a client that several tenants may have is found as none of theirs. */
  async find(clientId: string, tenantId?: string): Promise<KnownClient | null> {
    const builtIn = this.#builtIn.get(clientId);
    if (builtIn) return builtIn;
    if (hasDocument(clientId)) return this.#findByDocument(clientId, tenantId);
    const [, key] = /^([a-z][a-z0-9]{1,30})-[A-Za-z][A-Za-z0-9_]{0,39}$/.exec(clientId) ?? [];
    if (!key) return null;
    const tenant = await this.tenant({ key });
    if (!tenant) return null;
    const meta = (await this.#clientsOf(tenant)).get(clientId);
    if (!meta) return null;
    return { clientId, name: meta.name, active: meta.active, tenantId: tenant.id, meta };
  }

  async #findByDocument(clientId: string, tenantId: string | undefined): Promise<KnownClient | null> {
    if (tenantId === undefined) {
      if (!(await this.namesDocument(clientId))) return null;
      return { clientId, name: new URL(clientId).host, active: true, tenantId: null, meta: null, document: true };
    }
    const tenant = await this.tenant({ tenantId });
    const meta = tenant && (await this.#clientsOf(tenant)).get(clientId);
    return meta ? { clientId, name: meta.name, active: meta.active, tenantId, meta } : null;
  }

  /** True when an active client of any tenant names this document. */
  async namesDocument(address: string): Promise<boolean> {
    if (address.length > DOCUMENT_ADDRESS_MAX_CHARS) return false;
    const known = this.#documents.get(address);
    if (known !== undefined) return known;
    const named = await this.#store.origins.hasDocument(address);
    this.#documents.set(address, named);
    return named;
  }

  async externalClient(tenantId: string, apiName: string): Promise<ExternalClientMeta | null> {
    const tenant = await this.tenant({ tenantId });
    if (!tenant) return null;
    for (const meta of (await this.#clientsOf(tenant)).values()) if (meta.apiName === apiName) return meta;
    return null;
  }

  /** True when a client of the tenant acts as the user of this name. */
  async isIntegrationUser(tenantId: string, username: string): Promise<boolean> {
    const tenant = await this.tenant({ tenantId });
    if (!tenant) return false;
    const name = username.toLowerCase();
    return [...(await this.#clientsOf(tenant)).values()].some((meta) => meta.integrationUser?.toLowerCase() === name);
  }

  /** True when the client, or without one any active client, lists the browser origin. */
  async allowsOrigin(origin: string, clientId: string | undefined): Promise<boolean> {
    if (clientId !== undefined) {
      const client = await this.find(clientId);
      return client?.active === true && client.meta?.origins.includes(origin) === true;
    }
    const known = this.#origins.get(origin);
    if (known !== undefined) return known;
    const listed = await this.#store.origins.isListed(origin);
    this.#origins.set(origin, listed);
    return listed;
  }

  /** Stores the origins of a tenant whose configuration has just changed; grants of clients that are gone end. */
  async refreshOrigins(tenantId: string): Promise<void> {
    this.forget(tenantId);
    const tenant = await this.tenant({ tenantId });
    if (!tenant) return;
    const configuration = await this.#configurationOf(tenant);
    if (configuration === UNKNOWN) return;
    const { clients } = configuration;
    const active = [...clients.values()].filter((meta) => meta.active);
    await this.#store.origins.save(tenantId, tenant.metadataVersion, {
      origins: [...new Set(active.flatMap(({ origins }) => origins))],
      documents: active.flatMap(({ metadataDocument }) => metadataDocument ?? []),
      clientIds: [...this.#builtIn.keys(), ...clients.keys()],
    });
    this.#origins.clear();
    this.#documents.clear();
  }

  /** Catches up on changes whose event was lost. */
  async refreshAllOrigins(): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#source.tenants(after, TENANTS_PAGE);
      const versions = await this.#store.origins.versions(page.map((tenant) => tenant.id));
      for (const tenant of page)
        if ((versions.get(tenant.id) ?? -1) < tenant.metadataVersion) await this.refreshOrigins(tenant.id);
      const last = page.at(-1);
      if (!last || page.length < TENANTS_PAGE) return;
      after = last.id;
    }
  }

  /** Makes a new secret, of which only the hash is kept; null when no such client authenticates by secret. */
  async rotateSecret(tenantId: string, apiName: string): Promise<string | null> {
    const meta = await this.externalClient(tenantId, apiName);
    if (!meta?.confidential || meta.jwks) return null;
    const secret = randomBytes(32).toString('base64url');
    await this.#store.clientSecrets.rotate(tenantId, apiName, hashSecret(secret));
    return secret;
  }

  /** The client in the form that oidc-provider takes (RFC 7591); undefined when it may not be used at all. */
  async metadata(clientId: string, issuer: string): Promise<Record<string, unknown> | undefined> {
    // The provider reads the document of such a client.
    if (hasDocument(clientId)) return undefined;
    const client = await this.find(clientId);
    if (!client?.active) return undefined;
    const common = { client_id: clientId, client_name: client.name, tenantId: client.tenantId };
    return {
      ...common,
      ...(client.meta === null ? builtInMetadata(clientId, issuer) : await this.#externalMetadata(client)),
    };
  }

  async #externalMetadata({ tenantId, meta }: ExternalClient): Promise<Record<string, unknown>> {
    const grantTypes = grantTypesOf(meta);
    const bySecret = meta.confidential && !meta.jwks;
    const secretHash = bySecret ? await this.#store.clientSecrets.hash(tenantId, meta.apiName) : null;
    return {
      application_type: isInstalled(meta.redirectUris) ? 'native' : 'web',
      redirect_uris: [...meta.redirectUris],
      grant_types: grantTypes,
      response_types: grantTypes.includes('authorization_code') ? ['code'] : [],
      scope: scopesOf(meta).join(' '),
      origins: [...meta.origins],
      resources: [...resourcesOf(meta)],
      accessTokenSeconds: meta.accessTokenSeconds,
      agent: meta.agent,
      integrationUser: meta.integrationUser,
      token_endpoint_auth_method: bySecret ? 'client_secret_basic' : meta.jwks ? 'private_key_jwt' : 'none',
      ...(meta.jwks ? { jwks: meta.jwks } : {}),
      // The provider compares through secretMatches; no secret yet means none can match.
      ...(bySecret ? { client_secret: secretHash?.toString('base64url') ?? 'none' } : {}),
    };
  }

  /** Users who must have a second factor by the tenant's settings; null: unset. */
  async secondFactor(tenantId: string): Promise<SecondFactorPolicy | null> {
    const tenant = await this.tenant({ tenantId });
    return tenant && (await this.#configurationOf(tenant)).secondFactor;
  }

  /** Providers of the tenant's users; without any configuration no user can sign in. */
  async identityProviders(tenantId: string): Promise<readonly IdentityProviderMeta[]> {
    const tenant = await this.tenant({ tenantId });
    return tenant ? (await this.#configurationOf(tenant)).identityProviders : [];
  }

  async #clientsOf(tenant: Tenant): Promise<Map<string, ExternalClientMeta>> {
    return (await this.#configurationOf(tenant)).clients;
  }

  async #configurationOf(tenant: Tenant): Promise<Configuration> {
    const known = this.#configurations.get(tenant.id);
    if (known?.version === tenant.metadataVersion) return known;
    const snapshot = await this.#source.snapshot(tenant.id, tenant.metadataVersion);
    if (!snapshot) return UNKNOWN;
    const clients = new Map(Object.values(snapshot.externalClients).map((meta) => [meta.clientId, meta]));
    const read: Configuration = {
      version: tenant.metadataVersion,
      clients,
      secondFactor: snapshot.secondFactor,
      identityProviders: Object.values(snapshot.identityProviders),
    };
    this.#configurations.set(tenant.id, read);
    return read;
  }
}

function builtInMetadata(clientId: string, issuer: string): object {
  if (clientId === ACCOUNT_CLIENT_ID) return accountMetadata(issuer);
  const page = APP_CLIENTS.find((known) => known.clientId === clientId);
  if (page) return pageMetadata(issuer, page.path, page.scopes);
  if (clientId !== REFERENCE_CLIENT_ID) return CLI_METADATA;
  return { ...pageMetadata(issuer, REFERENCE_PATH, REFERENCE_SCOPES), accessTokenSeconds: REFERENCE_TOKEN_SECONDS };
}

const accountMetadata = (issuer: string): object => ({
  application_type: 'web',
  redirect_uris: [issuer + ACCOUNT_PATH],
  grant_types: [],
  response_types: ['none'],
  token_endpoint_auth_method: 'none',
  scope: 'openid',
});

/** A browser names the origin of the page when it asks for the token, also where it is our own. */
const pageMetadata = (issuer: string, path: string, scopes: readonly string[]): object => ({
  application_type: 'web',
  redirect_uris: [issuer + path],
  origins: [issuer],
  grant_types: ['authorization_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  resources: ['api'],
  scope: scopes.join(' '),
});

const CLI_METADATA = {
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback', 'http://[::1]/callback'],
  grant_types: ['authorization_code', 'refresh_token', DEVICE_CODE],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  scope: [...IDENTITY_SCOPE_NAMES, ...ALL_SCOPES].join(' '),
};

/** The maximum scopes of a client. Identity is open to each: its tokens name the user anyway. */
function scopesOf({ scopes }: ExternalClientMeta): string[] {
  const known = scopes.filter((scope) => ALL_SCOPES.includes(scope) || IDENTITY_SCOPE_NAMES.includes(scope));
  return [...new Set(['openid', ...known])];
}

/**
 * An application on the user's machine: no other one has a private scheme, beside which it may have https addresses that its
 * system leads to it. A website that is tried out on a loopback address has https addresses, and is none.
 */
const isInstalled = (redirectUris: readonly string[]): boolean =>
  redirectUris.some(isPrivateScheme) || (redirectUris.length > 0 && redirectUris.every(isNativeRedirect));

/** The grant types that a client asks for and can use. */
function grantTypesOf(meta: ExternalClientMeta): string[] {
  const names = new Set(meta.grantTypes.map((name) => GRANT_TYPES[name]).filter((name) => name !== undefined));
  // Without one user as whom it acts, the grant would be a way around every permission.
  if (!meta.integrationUser || !(meta.confidential || meta.jwks)) names.delete('client_credentials');
  if (meta.redirectUris.length === 0) names.delete('authorization_code');
  return [...names];
}

/** 256 random bits need no slow hash. */
const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/** Compares a presented secret with the stored hash, in constant time. */
export function secretMatches(stored: string, presented: string): boolean {
  const hash = Buffer.from(stored, 'base64url');
  return hash.length === 32 && timingSafeEqual(hash, hashSecret(presented));
}
