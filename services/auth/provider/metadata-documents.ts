/**
 * Clients that describe themselves by a document at their id (OAuth Client ID Metadata Document). The provider fetches
 * and caches documents; they are read through the guard of requests to other hosts, and here it is decided which ones may be
 * fetched, and what of them counts. Source: docs/decisions/client-metadata-documents.md.
 */
import { LRUCache } from 'lru-cache';
import type { Context } from 'oidc-provider';
import { membersOf } from '../../../lib/json/objects.ts';
import { isLoopbackByHttps, isNativeRedirect, redirectProblem } from '../../../lib/redirect-uris.ts';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import type { GuardedFetch } from '../../../mixins/outbound.ts';
import { type Clients, hasDocument } from '../clients.ts';
import type { AuthStore } from '../store/store.ts';

const DOCUMENT_MAX_BYTES = 10 * 1024;
const REDIRECT_URIS_MAX = 50;
const GRANT_TYPES: readonly unknown[] = ['authorization_code', 'refresh_token'];
const CACHE_SECONDS = { min: 60, max: 3_600 };
/** A document that cannot be read is not asked for by every request. */
export const DOCUMENT_FAILURE_KEPT_SECONDS = 10;

/** The provider's feature. Only documents that a tenant's client names are fetched, and count. */
export const clientDocuments = (clients: Clients): object => ({
  enabled: true,
  ack: 'draft-02',
  cacheDuration: CACHE_SECONDS,
  allowFetch: (_ctx: Context, address: string) => clients.namesDocument(address),
  allowClient: (_ctx: Context, client: Context) => clients.namesDocument(client.clientId),
});

type Fetch = (address: string, options: RequestInit) => Promise<Response>;

/** The host of a document did not answer with it. This may end by itself, and says nothing about the client. */
class DocumentUnread extends Error {}

/** True when a request failed because its client's document could not be read. */
export function isDocumentUnread(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) if (one instanceof DocumentUnread) return true;
  return false;
}

/** The provider's `fetch`, which reads these documents and nothing else; `refused` gets the reason why one cannot be used. */
export function documentReader(outbound: GuardedFetch, refused: (address: string, reason: unknown) => void): Fetch {
  const failures = new LRUCache<string, Error>({ max: 100, ttl: DOCUMENT_FAILURE_KEPT_SECONDS * 1_000 });
  return async (address, options) => {
    const before = failures.get(address);
    if (before) throw before;
    let wasRead = false;
    try {
      const response = await outbound(address, options, address);
      if (response.status !== 200) throw new Error(`the status is ${response.status}`);
      const text = await textOf(response);
      wasRead = true;
      return Response.json(whatCounts(address, text), { headers: cachingOf(response) });
    } catch (cause) {
      const Failure = wasRead ? Error : DocumentUnread;
      const error = new Failure(`The metadata document ${address} cannot be used.`, { cause });
      failures.set(address, error);
      refused(address, cause);
      throw error;
    }
  };
}

/** null: it is too long. */
async function textOf({ body }: Response): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    // To leave the loop ends the download.
    if (bytes > DOCUMENT_MAX_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const cachingOf = ({ headers }: Response): Record<string, string> => {
  const caching = headers.get('cache-control');
  return caching === null ? {} : { 'cache-control': caching };
};

/**
 * A document says who the client is and where it may be answered. What it can do is said by the tenant, and that it is public
 * is a rule here.
 */
function whatCounts(address: string, text: string | null): object {
  if (text === null) throw new Error(`it is longer than ${DOCUMENT_MAX_BYTES} bytes`);
  const document: unknown = JSON.parse(text);
  if (typeof document !== 'object' || document === null) throw new Error('it is no JSON object');
  const { client_id: named, redirect_uris, grant_types, token_endpoint_auth_method } = membersOf(document);
  if (named !== address) throw new Error('its client_id is not its address');
  if (token_endpoint_auth_method !== undefined && token_endpoint_auth_method !== 'none')
    throw new Error('it is of a client that is not public: token_endpoint_auth_method is not none');
  const redirectUris = texts(redirect_uris);
  const isNative = checkRedirects(redirectUris);
  const grantTypes = texts(grant_types).filter((name) => GRANT_TYPES.includes(name));
  return {
    client_id: address,
    redirect_uris: redirectUris,
    grant_types: ['authorization_code', ...grantTypes.filter((name) => name !== 'authorization_code')],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: isNative ? 'native' : 'web',
  };
}

/**
 * The rules for redirect addresses of the configuration, and those of the provider: what it refused itself, it would fetch
 * again for every request. Answers whether they are of a native application.
 */
function checkRedirects(uris: readonly string[]): boolean {
  if (uris.length === 0 || uris.length > REDIRECT_URIS_MAX)
    throw new Error(`it has no redirect_uris, or more than ${REDIRECT_URIS_MAX}`);
  const isNative = uris.some(isNativeRedirect);
  for (const [i, uri] of uris.entries()) {
    const problem = redirectProblem(uri);
    if (problem) throw new Error(`redirect_uris[${i}]: ${problem}`);
    if (isNative && isLoopbackByHttps(uri))
      throw new Error(`redirect_uris[${i}]: A native application has no https loopback address.`);
  }
  return isNative;
}

const texts = (list: unknown): string[] =>
  Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];

/** Look-up of clients and their users. */
export interface ClientSources {
  readonly clients: Clients;
  readonly store: AuthStore;
}

/** How the tenant of the signed-in user declares such a client; null for every other client, and before the sign-in. */
export async function declarationOf(
  { oidc }: Context,
  { clientId }: Context,
  { clients, store }: ClientSources,
): Promise<ExternalClientMeta | null> {
  if (!hasDocument(clientId)) return null;
  const { AccessToken, AuthorizationCode, RefreshToken } = oidc.entities;
  const userId = (AuthorizationCode ?? RefreshToken ?? AccessToken ?? oidc.session)?.accountId;
  const user = userId === undefined ? null : await store.credentials.byUser(userId);
  if (!user) return null;
  // A client that may not be used at all is refused by the check of the account.
  return (await clients.find(clientId, user.tenantId))?.meta ?? null;
}

/** The scopes that a tenant lets a client have. */
export const declaredScopes = ({ scopes, grantTypes }: ExternalClientMeta): string[] =>
  scopes.filter((scope) => scope !== 'offline_access' || grantTypes.includes('refresh_token'));
