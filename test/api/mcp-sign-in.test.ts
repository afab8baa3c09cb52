/**
 * An assistant without a client id of the platform, as in the current revision of the protocol: its library discovers
 * where to sign in, identifies the client by its metadata document, and requests further scopes when a tool needs them.
 */
import assert from 'node:assert/strict';
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { after, before, describe, it } from 'mocha';
import { walk } from '../../scripts/sign-in.ts';
import { type Api, api, demoPassword, tokenFor } from '../support/client.ts';
import { ONE_FIELD } from '../support/mcp.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const DOCUMENT = 'https://assistant.example/oauth/client.json';
const CALLBACK = 'http://127.0.0.1:8976/callback';

/** An assistant's stored state; it registers nowhere. */
class Keeper implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadataUrl = DOCUMENT;
  readonly clientMetadata = { client_name: 'Assistant', redirect_uris: [CALLBACK] };
  readonly scopes: (string | null)[] = [];
  came: URL | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #verifier = '';
  #discovered: OAuthDiscoveryState | undefined;
  #client: StoredOAuthClientInformation | undefined;

  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.#client;
  }
  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#client = client;
  }
  tokens(): StoredOAuthTokens | undefined {
    return this.#tokens;
  }
  saveTokens(tokens: StoredOAuthTokens): void {
    this.#tokens = tokens;
  }
  redirectToAuthorization(address: URL): void {
    this.came = address;
    this.scopes.push(address.searchParams.get('scope'));
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovered = state;
  }
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovered;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
}

describe('an assistant without a client id', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  const clients: Client[] = [];

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform({
      outbound: async () =>
        Response.json({ client_id: DOCUMENT, client_name: 'Assistant', redirect_uris: ['http://127.0.0.1/callback'] }),
    });
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(async () => {
    for (const client of clients) await client.close();
    await platform.stop();
  });

  const declare = (more: string): Promise<void> =>
    deployOverHttp(ada, {
      'externalClients/Assistant.yaml': `type: ExternalClient\napiName: Assistant\nname: The assistant\nmetadataDocument: ${DOCUMENT}\ngrantTypes: [authorization_code]\nscopes: [metadata:deploy, setup:read]\n${more}`,
    });
  const transportOf = (keeper: Keeper): StreamableHTTPClientTransport =>
    new StreamableHTTPClientTransport(new URL(`${platform.baseUrl}/mcp`), { authProvider: keeper });
  const open = async (keeper: Keeper): Promise<Client> => {
    const client = new Client({ name: 'tests', version: '1.0.0' });
    clients.push(client);
    await client.connect(transportOf(keeper));
    return client;
  };
  const signIn = async (keeper: Keeper): Promise<void> => {
    assert.ok(keeper.came, 'the library has asked for a browser');
    const answer = await walk(keeper.came, { username: 'ada@demo.example', password: demoPassword() });
    await transportOf(keeper).finishAuth(answer);
  };
  const call = (client: Client, name: string, given: object) => client.callTool({ name, arguments: { ...given } });

  it('signs in by the document that the tenant declares, and requests further scopes when a tool needs them', async () => {
    await declare('active: true\n');
    const keeper = new Keeper();
    await assert.rejects(open(keeper), UnauthorizedError);
    assert.equal(keeper.came?.searchParams.get('client_id'), DOCUMENT);
    assert.equal(keeper.came?.searchParams.get('resource'), `${platform.baseUrl}/mcp`);
    await signIn(keeper);
    const client = await open(keeper);
    const read = await call(client, 'metadata_retrieve', { package: ONE_FIELD });
    assert.notEqual(read.isError, true);
    const { files } = read.structuredContent as { files: Record<string, string> };
    await assert.rejects(call(client, 'metadata_validate', { files, package: ONE_FIELD }));
    assert.deepEqual(keeper.scopes, ['setup:read', 'setup:read metadata:deploy']);
    await signIn(keeper);
    const checked = await call(await open(keeper), 'metadata_validate', { files, package: ONE_FIELD });
    assert.notEqual(checked.isError, true, JSON.stringify(checked.structuredContent));
  });

  it("is listed among the connections by the tenant's name for it, and disappears when it is deactivated", async () => {
    await declare('active: true\n');
    const keeper = new Keeper();
    await assert.rejects(open(keeper), UnauthorizedError);
    await signIn(keeper);
    await open(keeper);
    const { body } = await ada.get('/me/connections');
    const [{ clientName, scopes }] = body.records.filter(({ clientId }: { clientId: string }) => clientId === DOCUMENT);
    assert.deepEqual([clientName, scopes], ['The assistant', ['setup:read']]);
    await declare('active: false\n');
    const end = Date.now() + 20_000;
    let status = 200;
    while (status === 200 && Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const answer = await fetch(`${platform.baseUrl}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${keeper.tokens()?.access_token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      });
      status = answer.status;
      if (status !== 200) assert.equal(((await answer.json()) as { code: string }).code, 'CLIENT_DISABLED');
    }
    assert.equal(status, 403);
  });
});
