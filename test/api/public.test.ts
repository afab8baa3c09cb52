/** The public operations of the specification: contracts only, never private data, the same for everyone. */
import assert from 'node:assert/strict';
import { OPERATIONS } from '../../contracts/operations.ts';
import { api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('Public operations', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  it('router, API description and capabilities are one set', async () => {
    const stranger = api(platform.baseUrl);
    const { body: description } = await stranger.get('/openapi.json');
    const { body: capabilities } = await stranger.get('/capabilities');
    const rows = OPERATIONS.map(({ operationId, method, path }) => `${operationId} ${method} ${path}`).sort();
    const described = Object.entries(
      description.paths as Record<string, Record<string, { operationId: string }>>,
    ).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(described.sort(), rows);
    assert.deepEqual(
      capabilities.operations
        .map(
          (one: { operationId: string; method: string; path: string }) =>
            `${one.operationId} ${one.method} ${one.path}`,
        )
        .sort(),
      rows,
    );
  });

  it('answer the same to everyone, and name no object of a tenant', async () => {
    const stranger = api(platform.baseUrl);
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    for (const path of ['/openapi.json', '/scopes', '/capabilities']) {
      const answer = await stranger.get(path);
      assert.equal((await ada.get(path)).text, answer.text);
      assert.ok(!/[A-Za-z]__c"/.test(Object.keys(answer.body.paths ?? {}).join('"')), path);
    }
  });

  it('say where to sign in', async () => {
    const { body } = await api(platform.baseUrl).get('/capabilities');
    const metadata = (await (await fetch(body.auth.authorizationServerMetadata)).json()) as {
      grant_types_supported: string[];
    };
    for (const grantType of body.auth.grantTypes)
      assert.ok(metadata.grant_types_supported.includes(grantType), grantType);
  });

  it('health, readiness and metrics are there for operators', async () => {
    assert.equal((await fetch(`${platform.baseUrl}/healthz`)).status, 200);
    const ready = await fetch(`${platform.baseUrl}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
    assert.match(await (await fetch(`${platform.baseUrl}/metrics`)).text(), /erp_http_requests_total/);
  });
});
