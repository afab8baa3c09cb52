/**
 * The endpoint for assistants, by the protocol's own client in both generations: lists and answers, authentication
 * and scopes, and that it changes nothing.
 */
import assert from 'node:assert/strict';
import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { after, before, describe, it } from 'mocha';
import { DOCUMENT_TOOLS, MCP_VERSIONS } from '../../contracts/mcp.ts';
import { MCP_OPERATIONS, MCP_SCOPES, OPERATION_RESOURCES, OPERATION_TOOLS } from '../../contracts/mcp-offers.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import { isMcpTool } from '../../lib/operation.ts';
import { COMPONENT_TYPES } from '../../lib/schema/snapshot.ts';
import type { Tokens } from '../../scripts/sign-in.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { assistantTokens, ONE_FIELD, thingsToRead, toolArguments } from '../support/mcp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what answers hold, they need no types for it
type Anything = any;

const TOOLS = [...OPERATION_TOOLS.map(({ name }) => name), ...Object.keys(DOCUMENT_TOOLS)];
const DOCUMENTS = 'erp://docs/latest';
const [NEWEST, ...OLDER] = MCP_VERSIONS;
const NOT_FOUND = [
  ['metadata_deployment_get', 'deploymentId', 'DEPLOYMENT_NOT_FOUND'],
  ['files_get', 'fileId', 'FILE_NOT_FOUND'],
  ['bulk_jobs_get', 'jobId', 'JOB_NOT_FOUND'],
] as const;
const EVERYTHING = { version: 1, types: COMPONENT_TYPES.map((name) => ({ name, members: ['*'] })) };

describe('the endpoint for assistants', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let token: string;
  let things: Awaited<ReturnType<typeof thingsToRead>>;
  const clients: Client[] = [];

  const tokens = (user: string, scope?: string): Promise<Tokens> => assistantTokens(platform.baseUrl, user, scope);

  const connect = async (bearer = token, pin: string | null = NEWEST): Promise<Client> => {
    const client = new Client(
      { name: 'tests', version: '1.0.0' },
      { versionNegotiation: { mode: pin === null ? 'legacy' : { pin } } },
    );
    const transport = new StreamableHTTPClientTransport(new URL(`${platform.baseUrl}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${bearer}` } },
    });
    await client.connect(transport);
    clients.push(client);
    return client;
  };

  const callTool = async (
    client: Client,
    name: string,
    given: object,
  ): Promise<CallToolResult & { data: Anything }> => {
    const result = (await client.callTool({ name, arguments: { ...given } })) as CallToolResult;
    return { ...result, data: result.structuredContent };
  };

  const calls = (): Promise<Record<string, object>> => toolArguments(ada, things);

  /** A request of a program without a library. */
  const post = (
    body: unknown,
    { bearer = token, headers = {} }: { bearer?: string | null; headers?: Record<string, string> } = {},
  ): Promise<Response> =>
    fetch(`${platform.baseUrl}/mcp`, {
      method: 'POST',
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  const ask = (method: string, params: object = {}): object => ({ jsonrpc: '2.0', id: 7, method, params });

  const isRefused = async (response: Response, status: number, code: string): Promise<Headers> => {
    const body = (await response.json()) as Anything;
    assert.equal(response.status, status, JSON.stringify(body));
    assert.equal(body.code, code);
    return response.headers;
  };

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    token = (await tokens('ada')).access_token;
    things = await thingsToRead(ada);
  });

  after(async () => {
    for (const client of clients) await client.close();
    await platform.stop();
  });

  for (const version of [NEWEST, null])
    it(`lists and calls every tool, ${version ?? 'as older clients do'}`, async () => {
      const client = await connect(token, version);
      if (version) assert.equal(client.getNegotiatedProtocolVersion(), version);
      assert.match(client.getInstructions() ?? '', /follow no instruction/);
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOLS,
      );
      const given = await calls();
      for (const { name, annotations, outputSchema } of tools) {
        assert.equal(annotations?.readOnlyHint, true, name);
        assert.equal(outputSchema?.type, 'object', name);
        // The client validates the answer against the schema.
        const { data, isError, content } = await callTool(client, name, given[name]!);
        assert.notEqual(isError, true, JSON.stringify(data));
        assert.deepEqual(JSON.parse(String((content.at(-1) as Anything).text)), data);
        if (name in DOCUMENT_TOOLS) continue;
        assert.equal(data.truncated, data.nextCursor !== null);
        assert.match(String((content[0] as Anything).text), /follow no instruction/);
      }
      const { data: retrieved } = await callTool(client, 'metadata_retrieve', given['metadata_retrieve']!);
      const [path] = Object.keys(retrieved.files);
      assert.match(retrieved.files[path!], /^type: CustomField/);
      assert.ok(retrieved.untrusted.includes('files'));
      const { data: validated } = await callTool(client, 'metadata_validate', given['metadata_validate']!);
      assert.deepEqual([validated.valid, validated.blocked], [true, []]);
      for (const [name, member] of [
        ['metadata_deployment_get', 'deploymentId'],
        ['files_get', 'fileId'],
        ['bulk_jobs_get', 'jobId'],
      ] as const)
        assert.equal((await callTool(client, name, given[name]!)).data[member], things[member]);
    });

  it('answers older revisions by their names', async () => {
    for (const version of OLDER) {
      const response = await post(
        ask('initialize', {
          protocolVersion: version,
          capabilities: {},
          clientInfo: { name: 'tests', version: '1.0.0' },
        }),
      );
      assert.equal(response.status, 200);
      assert.match(await response.text(), new RegExp(`"protocolVersion":"${version}"`));
    }
  });

  it('reads every resource, in pieces that form the whole', async () => {
    const client = await connect();
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      OPERATION_RESOURCES.map(({ uri }) => uri),
    );
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resourceTemplates.length, resources.length + 1);
    for (const { uri } of resources) {
      let whole = '';
      for (let at = uri; ; ) {
        const { contents } = await client.readResource({ uri: at });
        const [{ text, _meta }] = contents as Anything;
        whole += text;
        if (!_meta.truncated) break;
        at = `${uri}?cursor=${_meta.nextCursor}`;
      }
      const own = await ada.get(uri === 'erp://openapi' ? '/openapi.json' : '/metadata/types');
      assert.deepEqual(JSON.parse(whole), own.body, uri);
    }
    await assert.rejects(client.readResource({ uri: 'erp://openapi?cursor=1.x' }), /begin without a cursor/);
    await assert.rejects(client.readResource({ uri: 'erp://secrets' }), /not found/i);
  });

  it('searches and returns the published documents', async () => {
    const client = await connect((await tokens('eve', 'setup:read')).access_token);
    const { data } = await callTool(client, 'docs_search', { query: 'idempotency', take: 3 });
    assert.equal(data.results.length, 3);
    for (const { path } of data.results) {
      const { data: page } = await callTool(client, 'docs_get', { path });
      assert.match(page.text, /^#/, path);
    }
    let text = '';
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const given = { path: 'reference/metadata.md', ...(cursor ? { cursor } : {}) };
      const { data: page } = await callTool(client, 'docs_get', given);
      text += page.text;
      cursor = page.nextCursor;
    }
    const own = await fetch(`${platform.baseUrl}/versions/latest/docs/reference/metadata.md`);
    assert.equal(text, await own.text());
    const { contents } = await client.readResource({ uri: `${DOCUMENTS}/guides/first-request.md` });
    assert.match(String((contents as Anything)[0].text), /^# From sign-in/);
    for (const [given, code] of [
      [{ path: '../package.json' }, 'FILE_NOT_FOUND'],
      [{ path: 'index.md', version: '9.9.9' }, 'DOCS_VERSION_NOT_FOUND'],
    ] as const)
      assert.equal((await callTool(client, 'docs_get', given)).data.code, code);
    await assert.rejects(client.readResource({ uri: `${DOCUMENTS}/nothing.md` }), /not found/i);
  });

  it('reports truncation, and continues after it', async () => {
    const client = await connect();
    const whole = (await ada.post('/metadata/retrieve', { package: EVERYTHING })).body;
    const files: Record<string, string> = {};
    const components: unknown[] = [];
    let cursor: string | null | undefined;
    let pages = 0;
    do {
      const given = { package: EVERYTHING, ...(cursor ? { cursor } : {}) };
      const { data, isError, ...rest } = await callTool(client, 'metadata_retrieve', given);
      assert.notEqual(isError, true, JSON.stringify(data));
      assert.ok(Buffer.byteLength(JSON.stringify(rest)) <= LIMITS.mcp_answer_max_bytes);
      assert.equal(data.truncated, data.nextCursor !== null);
      for (const [path, text] of Object.entries<string>(data.files)) files[path] = (files[path] ?? '') + text;
      components.push(...data.components);
      cursor = data.nextCursor;
      pages++;
    } while (cursor);
    // The answer contains its time.
    const own = 'erp-project.yaml';
    assert.deepEqual({ ...files, [own]: '' }, { ...whole.files, [own]: '' });
    assert.deepEqual(components, whole.components);
    const refused = await callTool(client, 'metadata_retrieve', { package: EVERYTHING, cursor: 'nonsense' });
    assert.deepEqual([refused.isError, refused.data.code], [true, 'CURSOR_INVALID']);
    assert.ok(pages > 1);
  });

  it('answers refusals as the API does, with all violations', async () => {
    const client = await connect();
    for (const [name, id, code] of NOT_FOUND) {
      const unknown = await callTool(client, name, { [id]: '00000000-0000-7000-8000-000000000000' });
      assert.equal(unknown.isError, true);
      assert.deepEqual([unknown.data.code, unknown.data.status], [code, 404]);
      assert.match(unknown.data.requestId, /^req_/);
      assert.ok(unknown.data.type.endsWith(`/docs/errors/${code}`), unknown.data.type);
    }
    for (const [name, given, pointer] of [
      ['files_list', { objectApiName: 'Account' }, 'query:recordId'],
      ['files_list', { take: 0 }, '/take'],
      ['bulk_jobs_list', { state: 'DONE' }, '/state'],
      ['files_get', { fileId: 'x' }, '/fileId'],
      ['bulk_jobs_get', {}, '/jobId'],
    ] as const) {
      const { data } = await callTool(client, name, given);
      assert.deepEqual([data.status, data.errors?.[0]?.pointer], [400, pointer], JSON.stringify(data));
    }
    const wrong = await callTool(client, 'metadata_validate', { file: {}, package: 3, cursor: 4 });
    assert.equal(wrong.isError, true);
    assert.ok(wrong.data.errors.length >= 3, JSON.stringify(wrong.data));
    await assert.rejects(client.callTool({ name: 'metadata_deploy', arguments: {} }), /not found/);
  });

  it('answers a request without a token with its metadata address and scopes', async () => {
    const headers = await isRefused(await post(ask('tools/list'), { bearer: null }), 401, 'TOKEN_MISSING');
    const at = `${platform.baseUrl}/.well-known/oauth-protected-resource/mcp`;
    assert.equal(headers.get('www-authenticate'), `Bearer scope="setup:read", resource_metadata="${at}"`);
    const described = (await (await fetch(at)).json()) as Anything;
    assert.equal(described.resource, `${platform.baseUrl}/mcp`);
    assert.deepEqual(described.authorization_servers, [platform.baseUrl]);
    assert.deepEqual(described.scopes_supported, MCP_SCOPES);
  });

  it('accepts tokens issued for it, which the API refuses', async () => {
    const forApi = await tokenFor(platform.baseUrl, 'ada');
    const headers = await isRefused(await post(ask('tools/list'), { bearer: forApi }), 401, 'TOKEN_AUDIENCE_INVALID');
    assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token".*scope="setup:read".*resource\/mcp"/);
    // In either order of use.
    for (let round = 0; round < 2; round++) {
      const refused = await api(platform.baseUrl, token).get('/metadata/types');
      assert.deepEqual([refused.status, refused.body.code], [401, 'TOKEN_AUDIENCE_INVALID']);
      assert.equal((await post(ask('ping'))).status, 200);
      assert.equal((await ada.get('/identity')).status, 200);
    }
  });

  it('limits a token to the tools of its scopes', async () => {
    const { scope } = await tokens('ada', 'data:write files:read files:write setup:read');
    assert.deepEqual(scope?.split(' ').sort(), ['files:read', 'setup:read']);
  });

  it("requests the scope that a tool needs, together with the token's scopes", async () => {
    const { access_token: bearer } = await tokens('ada', 'setup:read');
    const client = await connect(bearer, null);
    const fine = await callTool(client, 'metadata_retrieve', { package: ONE_FIELD });
    assert.notEqual(fine.isError, true);
    const call = ask('tools/call', { name: 'metadata_validate', arguments: { files: {}, package: ONE_FIELD } });
    const headers = await isRefused(await post(call, { bearer }), 403, 'SCOPE_INSUFFICIENT');
    const challenge = headers.get('www-authenticate') ?? '';
    assert.match(challenge, /^Bearer error="insufficient_scope"/);
    assert.match(challenge, /scope="setup:read metadata:deploy"/);
    assert.match(challenge, /oauth-protected-resource\/mcp"/);
    for (const [name, scope] of [
      ['files_list', 'files:read'],
      ['bulk_jobs_list', 'bulk:run'],
    ] as const) {
      const refused = await isRefused(
        await post(ask('tools/call', { name, arguments: {} }), { bearer }),
        403,
        'SCOPE_INSUFFICIENT',
      );
      assert.ok(
        refused.get('www-authenticate')?.includes(`setup:read ${scope}"`),
        String(refused.get('www-authenticate')),
      );
    }
  });

  it('refuses operations that the user may not execute', async () => {
    const { access_token: bearer } = await tokens('sam');
    const client = await connect(bearer);
    const { data, isError } = await callTool(client, 'metadata_retrieve', { package: ONE_FIELD });
    assert.deepEqual([isError, data.code], [true, 'METADATA_PERMISSION_DENIED']);
  });

  it('shows nothing of another tenant', async () => {
    const client = await connect((await tokens('eve')).access_token);
    for (const [name, id, code] of NOT_FOUND)
      assert.equal((await callTool(client, name, { [id]: things[id] })).data.code, code);
    for (const name of ['files_list', 'bulk_jobs_list'])
      assert.deepEqual((await callTool(client, name, {})).data.records, []);
  });

  it('lists files and jobs page by page, and shows those of the caller alone', async () => {
    const client = await connect();
    const api = { files_list: '/files', bulk_jobs_list: '/bulk/jobs' };
    await thingsToRead(ada);
    for (const [name, path] of Object.entries(api)) {
      const found: unknown[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const { data, isError } = await callTool(client, name, { take: 1, ...(cursor ? { cursor } : {}) });
        assert.notEqual(isError, true, JSON.stringify(data));
        assert.deepEqual([data.records.length, data.truncated], [1, data.nextCursor !== null]);
        assert.ok(data.untrusted.includes('records'));
        found.push(...data.records);
        cursor = data.nextCursor;
      }
      assert.deepEqual(found, (await ada.get(path)).body.records);
      const { nextCursor } = (await callTool(client, name, { take: 1 })).data;
      const other = await callTool(client, name, { take: 2, cursor: `1${nextCursor}` });
      assert.equal(other.data.code, 'CURSOR_INVALID');
    }
    const sam = await connect((await tokens('sam')).access_token);
    for (const [name, id, code] of NOT_FOUND.slice(1))
      assert.equal((await callTool(sam, name, { [id]: things[id] })).data.code, code);
    assert.deepEqual((await callTool(client, 'files_get', { fileId: things.fileId })).data.untrusted, [
      'name',
      'contentType',
      'attachedTo',
    ]);
  });

  it('ends with the grant, also between two calls', async () => {
    const { access_token: bearer } = await tokens('ada');
    const client = await connect(bearer);
    assert.notEqual((await callTool(client, 'metadata_retrieve', { package: ONE_FIELD })).isError, true);
    const revoked = await fetch(`${platform.baseUrl}/oauth2/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token: bearer, client_id: 'erp-cli' }),
    });
    assert.equal(revoked.status, 200);
    const call = ask('tools/call', { name: 'metadata_retrieve', arguments: { package: ONE_FIELD } });
    await isRefused(await post(call, { bearer }), 401, 'TOKEN_REVOKED');
  });

  it('refuses origins that the client does not list', async () => {
    const headers = { origin: 'https://elsewhere.example' };
    await isRefused(await post(ask('ping'), { headers }), 403, 'ORIGIN_NOT_ALLOWED');
    const preflight = await fetch(`${platform.baseUrl}/mcp`, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'POST' },
    });
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, null]);
  });

  it('accepts only POST, one message of bounded size, in JSON', async () => {
    const authorization = `Bearer ${token}`;
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(`${platform.baseUrl}/mcp`, { method, headers: { authorization } });
      const headers = await isRefused(response, 405, 'METHOD_NOT_ALLOWED');
      assert.equal(headers.get('allow'), 'POST, OPTIONS');
    }
    const large = ask('ping', { padding: 'x'.repeat(LIMITS.mcp_body_max_bytes) });
    await isRefused(await post(large), 413, 'REQUEST_TOO_LARGE');
    await isRefused(await post(large, { bearer: null }), 401, 'TOKEN_MISSING');
    await isRefused(await post('{}', { headers: { 'content-type': 'text/plain' } }), 415, 'MEDIA_TYPE_UNSUPPORTED');
    for (const [body, code] of [
      ['{', -32700],
      ['', -32700],
      ['['.repeat(100), -32700],
      [[ask('ping'), ask('ping')], -32600],
      [7, -32600],
      [ask('subscriptions/listen'), -32601],
      [ask('metadata/deploy'), -32601],
    ] as const) {
      const text = await (await post(body)).text();
      assert.ok(text.includes(`"code":${code}`), `${JSON.stringify(body)}: ${text}`);
    }
  });

  it('is listed in the capabilities', async () => {
    const { body } = await ada.get('/capabilities');
    assert.equal(body.mcp.endpoint, `${platform.baseUrl}/mcp`);
    assert.deepEqual(body.mcp.protocolVersions, MCP_VERSIONS);
    assert.deepEqual(
      body.mcp.tools.flatMap(({ operationId }: Anything) => operationId ?? []),
      OPERATIONS.filter(isMcpTool).map(({ operationId }) => operationId),
    );
    assert.deepEqual(
      body.mcp.tools.map(({ name }: Anything) => name),
      TOOLS,
    );
    assert.deepEqual(body.mcp.writeLimits, { mutationsAllowed: false });
  });

  it('changes nothing, whatever is called', async () => {
    for (const [operationId, { mutation }] of MCP_OPERATIONS) assert.equal(mutation, false, operationId);
    const state = async (): Promise<unknown> => {
      const { body } = await ada.post('/metadata/retrieve', { package: ONE_FIELD });
      const deployments = await ada.get('/metadata/deployments');
      const committed = await ada.get('/events/audit?outcome=committed');
      return [body.metadataVersion, deployments.body, committed.body.records[0]?.auditId];
    };
    const before = await state();
    const client = await connect();
    for (const [name, given] of Object.entries(await calls())) {
      const { isError, data } = await callTool(client, name, given);
      assert.notEqual(isError, true, `${name}: ${JSON.stringify(data)}`);
    }
    assert.deepEqual(await state(), before);
  });
});
