/** The resources of a client's tokens: the API, the endpoint for assistants, or both. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, post, type Seen, type TokenAnswer } from './browser.ts';
import { type AuthHarness, externalClient, startAuth } from './harness.ts';

const HOME = 'http://127.0.0.1/callback';
const SCOPES = 'data:read metadata:deploy offline_access setup:read';
const DOCUMENT = 'https://assistant.example/oauth/client.json';

describe('a client that is bound to resources', () => {
  let auth: AuthHarness;
  let api: string;
  let mcp: string;
  before(async () => {
    auth = await startAuth({
      outbound: async () => Response.json({ client_id: DOCUMENT, redirect_uris: [HOME] }),
    });
    api = `${auth.baseUrl}/api/v1`;
    mcp = `${auth.baseUrl}/mcp`;
  });
  after(() => auth.stop());

  async function declare(changes: Partial<ExternalClientMeta>): Promise<void> {
    auth.clients['Assistant'] = externalClient({
      apiName: 'Assistant',
      redirectUris: [HOME],
      scopes: SCOPES.split(' '),
      ...changes,
    });
    await auth.bump();
  }
  const byDocument = (changes: Partial<ExternalClientMeta> = {}): Promise<void> =>
    declare({ clientId: DOCUMENT, metadataDocument: DOCUMENT, redirectUris: [], ...changes });

  function ask(resources: readonly string[], client_id = 'demo-Assistant', challenge = pkce().challenge): URL {
    const url = authorizeUrl(auth.baseUrl, challenge, { client_id, redirect_uri: HOME, scope: SCOPES });
    for (const resource of resources) url.searchParams.append('resource', resource);
    return url;
  }
  async function signIn(resources: readonly string[], client_id?: string): Promise<TokenAnswer> {
    const { verifier, challenge } = pkce();
    const back = await authorize(new Browser(), ask(resources, client_id, challenge));
    if (back.searchParams.get('error')) return { error: back.searchParams.get('error') };
    const { body } = await post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'authorization_code',
      client_id: client_id ?? 'demo-Assistant',
      redirect_uri: HOME,
      code: back.searchParams.get('code') ?? '',
      code_verifier: verifier,
    });
    return body;
  }
  const renew = (refresh_token: string, resource?: string) =>
    post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'refresh_token',
      client_id: 'demo-Assistant',
      refresh_token,
      ...(resource === undefined ? {} : { resource }),
    });
  const audience = ({ access_token, error }: TokenAnswer): string => error ?? claims(access_token).aud;
  async function consentPage(resources: readonly string[], client_id?: string): Promise<Seen> {
    const browser = new Browser();
    const page = await browser.visit(ask(resources, client_id));
    return browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
  }
  const scopesOn = ({ html }: Seen): string[] =>
    [...html.matchAll(/<li[^>]*>[^<]*<code>([^<]*)/g)].map(([, scope]) => scope ?? '').sort();

  it('gets tokens for its own resource only, also when it requests none', async () => {
    await declare({ resources: ['mcp'] });
    for (const [asked, got] of [
      [[], mcp],
      [[mcp], mcp],
      [[api], 'invalid_target'],
      [[mcp, api], 'invalid_target'],
    ] as const)
      assert.equal(audience(await signIn(asked)), got, asked.join(' '));
    await declare({ resources: ['api'] });
    for (const [asked, got] of [
      [[], api],
      [[mcp], 'invalid_target'],
    ] as const)
      assert.equal(audience(await signIn(asked)), got, asked.join(' '));
  });

  it('may request either when it is bound to none, and gets the API by default', async () => {
    await declare({});
    for (const [asked, got] of [
      [[], api],
      [[mcp], mcp],
    ] as const)
      assert.equal(audience(await signIn(asked)), got);
  });

  it('can renew for the API no longer once it is bound to the endpoint for assistants', async () => {
    await declare({});
    const tokens = await signIn([mcp, api].toReversed());
    assert.equal(audience(tokens), api);
    await declare({ resources: ['mcp'] });
    const refused = await renew(tokens.refresh_token, api);
    assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_target']);
    const { body } = await renew(tokens.refresh_token, mcp);
    assert.deepEqual(
      [claims(body.access_token).aud, claims(body.access_token).scope.includes('data:read')],
      [mcp, false],
    );
  });

  it('gets no other resource by a pushed request', async () => {
    await declare({ resources: ['mcp'] });
    const { status, body } = await post(
      `${auth.baseUrl}/oauth2/par`,
      Object.fromEntries(ask([api]).searchParams) as Record<string, string>,
    );
    assert.deepEqual([status, body.error], [400, 'invalid_target']);
  });

  it('is for assistants only when it has a metadata document, unless the tenant configures otherwise', async () => {
    await byDocument();
    assert.equal(audience(await signIn([], DOCUMENT)), mcp);
    assert.equal(audience(await signIn([mcp], DOCUMENT)), mcp);
    assert.equal(audience(await signIn([api], DOCUMENT)), 'invalid_target');
    assert.equal(audience(await signIn([mcp, api], DOCUMENT)), 'invalid_target');
    await byDocument({ resources: ['api', 'mcp'] });
    assert.equal(audience(await signIn([api], DOCUMENT)), api);
  });

  it('is shown with the resource and the scopes that apply there', async () => {
    await declare({});
    const assistants = await consentPage([mcp]);
    assert.match(assistants.html, /the endpoint for assistants \(<code>\/mcp<\/code>\)\./);
    assert.match(assistants.html, /cannot deploy/);
    assert.deepEqual(scopesOn(assistants), ['metadata:deploy', 'offline_access', 'setup:read']);
    const program = await consentPage([]);
    assert.match(program.html, /the API \(<code>\/api\/v1<\/code>\)\./);
    assert.doesNotMatch(program.html, /cannot deploy|change nothing/);
    assert.deepEqual(scopesOn(program), SCOPES.split(' '));
    const both = await consentPage([mcp, api]);
    assert.match(both.html, /<code>\/mcp<\/code>\) and the API/);
    assert.deepEqual(scopesOn(both), SCOPES.split(' '));
  });
});
