/** ExternalClient: an application that may call the API; never its secret. */
import { isIP } from 'node:net';
import { type Static, Type } from 'typebox';
import { IDENTITY_SCOPES, SCOPES } from '../../../lib/operation.ts';
import { isLoopbackByHttps, isPrivateScheme, redirectProblem } from '../../../lib/redirect-uris.ts';
import { RATE_LIMIT_NAMES, type RateLimitOverrides, TOKEN_RESOURCES } from '../../../lib/schema/snapshot.ts';
import { type Component, componentsOf, componentType } from './component.ts';
import { type CheckContext, defineKind } from './kind.ts';
import { keyProblem } from './public-keys.ts';
import { apiName, flag, group, label, optional, setOf, shownFlag } from './schema.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
/** Was allowed without being offered: clients of then keep it, and no other client gets it. */
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials', DEVICE_CODE, TOKEN_EXCHANGE] as const;

const units = (description: string) => optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000_000, description }));

/** Limits narrower than those that the tenant has. */
const LIMITS = {
  connection: units('Cost units per 60 s.'),
  tenant: units('Cost units per 60 s.'),
  daily: units('Cost units per 24 h.'),
  concurrency: units('Requests in flight.'),
};

/** The limits that a component may set, of those that there are. */
export const limitsGroup = <P extends Partial<typeof LIMITS>>(pick: (limits: typeof LIMITS) => P) =>
  group(pick(LIMITS), 'Limits narrower than those that the tenant has.');

export const rateLimits = (declared: Partial<RateLimitOverrides> = {}): RateLimitOverrides => ({
  connection: null,
  tenant: null,
  daily: null,
  concurrency: null,
  ...declared,
});

/** A tenant and its clients can only narrow what the tenant has. */
export function checkLimits(
  component: Component,
  declared: Partial<RateLimitOverrides> | undefined,
  context: CheckContext,
): void {
  for (const name of RATE_LIMIT_NAMES) {
    const max = context.ceilings?.[name];
    if (max === undefined || (declared?.[name] ?? 0) <= max) continue;
    const message = `The limit can only be narrowed: ${max} at most. Only the operator of the platform widens it.`;
    context.problem('LIMIT_EXCEEDED', component, `/rateLimits/${name}`, message, { details: { max } });
  }
}

function isRange(range: string): boolean {
  const [address, bits, ...rest] = range.split('/');
  const family = isIP(address ?? '');
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

const DOCUMENT_ADDRESS_MAX_CHARS = 255;
/** Restrictions of a client with a metadata document: it is public, and acts for people alone. */
const DOCUMENT_GRANTS: ReadonlySet<string> = new Set(['authorization_code', 'refresh_token']);
const NOT_BESIDE_DOCUMENT = ['redirectUris', 'origins', 'jwks', 'integrationUser', 'confidential'] as const;

function documentProblem(address: string): string | null {
  const url = URL.parse(address);
  if (url?.protocol !== 'https:' || url.href !== address) return 'Not an https address in its normal form.';
  if (url.username || url.password || url.port || url.hash || url.search)
    return 'The address has no user, port, query or fragment.';
  if (url.pathname === '/') return 'The address has a path.';
  // auth refuses what a name leads to inside the network; these never lead elsewhere.
  if (isIP(url.hostname) || url.hostname.startsWith('[') || !/\.[a-z][a-z0-9-]+$/.test(url.hostname))
    return 'The host is a public name.';
  return null;
}

function checkDocumentClient(
  body: Record<string, unknown> & { grantTypes: readonly string[] },
  address: string,
  invalid: (pointer: string, message: string) => void,
): void {
  const problem = documentProblem(address);
  if (problem) invalid('/metadataDocument', problem);
  for (const name of NOT_BESIDE_DOCUMENT)
    if (body[name] !== undefined && body[name] !== false) invalid(`/${name}`, 'Not together with metadataDocument.');
  if (!body.grantTypes.every((grant) => DOCUMENT_GRANTS.has(grant)))
    invalid('/grantTypes', 'With metadataDocument only authorization_code and refresh_token.');
}

export const EXTERNAL_CLIENT = componentType('ExternalClient', {
  apiName: apiName('Stable name; the client id is `<tenantKey>-<apiName>`, or `metadataDocument`.'),
  name: label('As users see it when they consent.'),
  redirectUris: optional(setOf(Type.String({ maxLength: 2_000 }), 'Allowed redirect URIs of a sign-in.', 50)),
  scopes: optional(
    setOf(
      Type.Enum([...Object.keys(IDENTITY_SCOPES), ...Object.keys(SCOPES)]),
      'The most that the client can ask for. `openid` is always among them.',
    ),
  ),
  resources: optional(
    setOf(
      Type.Enum([...TOKEN_RESOURCES]),
      'What its tokens may be for: `api` (`/api/v1`), `mcp` (`/mcp`, where nothing is changed). Both when empty; with `metadataDocument` only `mcp`.',
    ),
  ),
  grantTypes: setOf(
    Type.Enum([...GRANT_TYPES]),
    'OAuth grants that it may use. Token exchange is not offered: a client that named it before may keep it, without effect.',
  ),
  confidential: optional(flag(false, 'It can keep a secret; public clients prove themselves by PKCE alone.')),
  agent: optional(flag(false, 'It is an agent: policies and approvals apply.')),
  active: shownFlag(true, 'It may get and use tokens.'),
  ipRanges: optional(setOf(Type.String({ maxLength: 50 }), 'Network addresses it may come from; all when empty.', 200)),
  origins: optional(setOf(Type.String({ maxLength: 300 }), 'Browser origins that may call the API.', 50)),
  accessTokenSeconds: optional(
    Type.Integer({
      minimum: 60,
      maximum: 3_600,
      description: 'Life of its access tokens; only shorter than usual.',
    }),
  ),
  rateLimits: optional(limitsGroup(({ connection, concurrency }) => ({ connection, concurrency }))),
  integrationUser: optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'Username whose rights client_credentials has.' }),
  ),
  jwks: optional(
    group(
      {
        keys: Type.Array(Type.Record(Type.String({ pattern: '^.{1,50}$' }), Type.Unknown()), {
          minItems: 1,
          maxItems: 10,
          description: 'Public keys (RFC 7517).',
        }),
      },
      'Public keys for private_key_jwt.',
    ),
  ),
  metadataDocument: optional(
    Type.String({
      maxLength: DOCUMENT_ADDRESS_MAX_CHARS,
      description: 'Address of its Client ID Metadata Document, which is the client id and has the redirect addresses.',
    }),
  ),
});

type ClientBody = Static<(typeof EXTERNAL_CLIENT)['schema']>;

/** Settings that the authorization server cannot use. */
function checkUsable(component: Component & { body: ClientBody }, context: CheckContext): void {
  const { body } = component;
  const refuse = (pointer: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
  if (body.grantTypes.includes(TOKEN_EXCHANGE)) refuse('/grantTypes', 'Token exchange is not offered.');
  if (hasNothingToRefresh(body))
    refuse(
      '/grantTypes',
      'refresh_token needs authorization_code or device_code besides: only a person who signs in gives a refresh token.',
    );
  const loopback = loopbackProblem(body);
  if (loopback !== null)
    refuse(
      `/redirectUris/${loopback}`,
      'A client with a private scheme is an installed application, which has no https loopback address.',
    );
  for (const [i, key] of (body.jwks?.keys ?? []).entries()) {
    const found = keyProblem(key);
    if (found) refuse(`/jwks/keys/${i}${found.member}`, found.message);
  }
  warnOfRefreshing(component, context);
}

/** Both halves of a refresh are needed: the grant, and the scope that a person allows. */
function warnOfRefreshing(component: Component & { body: ClientBody }, context: CheckContext): void {
  const { grantTypes, scopes = [] } = component.body;
  const [grant, scope] = [grantTypes.includes('refresh_token'), scopes.includes('offline_access')];
  if (grant && !scope)
    context.warning(
      'WITHOUT_EFFECT',
      component,
      '/grantTypes',
      'Without the scope offline_access it gets no refresh token.',
    );
  if (scope && !grant)
    context.warning(
      'WITHOUT_EFFECT',
      component,
      '/scopes',
      'Without the grant refresh_token, offline_access has no effect.',
    );
}

const hasNothingToRefresh = ({ grantTypes }: ClientBody): boolean =>
  grantTypes.includes('refresh_token') &&
  !grantTypes.includes('authorization_code') &&
  !grantTypes.includes(DEVICE_CODE);

/** The place of an https loopback address beside a private scheme; null: there is none. */
function loopbackProblem({ redirectUris = [] }: ClientBody): number | null {
  const place = redirectUris.findIndex(isLoopbackByHttps);
  return place >= 0 && redirectUris.some(isPrivateScheme) ? place : null;
}

export const externalClient = defineKind({
  ...EXTERNAL_CLIENT,
  memberFormat: '<ExternalClient>',
  reversible: true,
  check(component, context) {
    const body = component.body;
    const invalid = (pointer: string, message: string): void =>
      context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
    checkLimits(component, body.rateLimits, context);
    for (const [i, uri] of (body.redirectUris ?? []).entries()) {
      const problem = redirectProblem(uri);
      if (problem) invalid(`/redirectUris/${i}`, problem);
    }
    for (const [i, origin] of (body.origins ?? []).entries())
      if (!URL.canParse(origin) || new URL(origin).origin !== origin || !/^https?:/.test(origin))
        invalid(`/origins/${i}`, 'Not an origin such as https://app.example.com.');
    for (const [i, range] of (body.ipRanges ?? []).entries())
      if (!isRange(range)) invalid(`/ipRanges/${i}`, 'Not an address or a range such as 192.0.2.0/24.');
    if (body.metadataDocument !== undefined) checkDocumentClient(body, body.metadataDocument, invalid);
    else if (body.grantTypes.includes('authorization_code') && !body.redirectUris?.length)
      invalid('/grantTypes', 'authorization_code needs a redirect address.');
    if (body.grantTypes.includes('client_credentials') && (!body.integrationUser || !body.confidential))
      invalid('/grantTypes', 'client_credentials needs confidential: true and an integrationUser.');
    checkUsable(component, context);
  },
  checkAll(context: CheckContext) {
    const named = new Map<string, string>();
    for (const client of componentsOf(context.after, EXTERNAL_CLIENT)) {
      const { apiName: name, metadataDocument } = client.body;
      if (metadataDocument === undefined) continue;
      const other = named.get(metadataDocument);
      if (other === undefined) named.set(metadataDocument, name);
      else context.problem('NAME_CONFLICT', client, '/metadataDocument', `${other} names this document already.`);
    }
  },
  compile(component, draft) {
    const body = component.body;
    draft.externalClients[body.apiName] = {
      apiName: body.apiName,
      clientId: body.metadataDocument ?? `${draft.tenant.key}-${body.apiName}`,
      name: body.name,
      redirectUris: body.redirectUris ?? [],
      scopes: body.scopes ?? [],
      grantTypes: body.grantTypes,
      confidential: body.confidential ?? false,
      agent: body.agent ?? false,
      active: body.active,
      ipRanges: body.ipRanges ?? [],
      origins: body.origins ?? [],
      accessTokenSeconds: body.accessTokenSeconds ?? null,
      rateLimits: rateLimits(body.rateLimits),
      integrationUser: body.integrationUser ?? null,
      ...(body.jwks ? { jwks: body.jwks } : {}),
      ...(body.metadataDocument === undefined ? {} : { metadataDocument: body.metadataDocument }),
      ...(body.resources?.length ? { resources: body.resources } : {}),
    };
  },
});
