/** An operation that is going to be gone says so in every answer and every document, until it is. */
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { Type } from 'typebox';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { correctPlatformTime, platformTime } from '../../../lib/values/clock.ts';
import { exampleNamed, likeExample } from '../../support/examples.ts';
import { type Answer, row, type Stage, startStage } from './stage.ts';

const DAY_MS = 86_400_000;
const dayIn = (days: number): string => new Date(platformTime() + days * DAY_MS).toISOString().slice(0, 10);

const deprecated = {
  since: dayIn(-30),
  sunset: dayIn(365),
  replacement: 'stub.records.list',
  documentation: 'guides/move-to-lists',
};

describe('a deprecated operation', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage(
      {},
      {
        operations: [
          row({
            operationId: 'stub.old.get',
            method: 'GET',
            path: '/old',
            scopes: ['data:read'],
            deprecated,
            queryParameters: [
              { name: 'take', description: 'Size.', schema: Type.Integer() },
              {
                name: 'limit',
                description: 'Size.',
                schema: Type.Integer(),
                deprecated: { ...deprecated, replacement: 'take' },
              },
            ],
          }),
          row({ operationId: 'stub.old.create', method: 'POST', path: '/old', scopes: 'authenticated' }),
        ],
      },
    );
  });
  after(() => stage.stop());

  const announces = ({ headers }: Answer): void => {
    assert.equal(headers['deprecation'], `@${Date.parse(deprecated.since) / 1_000}`);
    assert.equal(Date.parse(String(headers['sunset'])), Date.parse(deprecated.sunset));
    assert.match(String(headers['sunset']), /^\w{3}, \d\d \w{3} \d{4} 00:00:00 GMT$/);
    for (const line of exampleNamed('docs/reference/versioning.md#deprecation').trim().split('\n')) {
      const [name = '', example = ''] = line.split(/: (.*)/);
      assert.match(String(headers[name.toLowerCase()]), likeExample(example.replace('Fri', '…').replace('Jan', '…')));
    }
    const documents = `${stage.baseUrl}/api/v1/versions/1.0.0/docs`;
    assert.deepEqual(String(headers['link']).split(', '), [
      `<${documents}/guides/move-to-lists>; rel="deprecation"; type="text/html"`,
      `<${documents}/reference/versioning>; rel="sunset"; type="text/html"`,
      `<${documents}/operations/stub.records.list>; rel="successor-version"; type="text/html"`,
    ]);
  };

  it('is announced in every response, errors included', async () => {
    const ok = await stage.send('GET', '/old');
    assert.equal(ok.status, 200);
    announces(ok);
    announces(await stage.send('HEAD', '/old'));
    const refused: [number, Answer][] = [
      [401, await stage.send('GET', '/old', { token: null })],
      [403, await stage.send('GET', '/old', { token: await stage.token({ scope: 'me:read' }) })],
      [400, await stage.send('GET', '/old?nope=1')],
    ];
    stage.answer = () => {
      throw new PlatformError('RECORD_NOT_FOUND', 'It is not there.');
    };
    refused.push([404, await stage.send('GET', '/old')]);
    stage.answer = () => ({ body: {} });
    for (const [status, answer] of refused) {
      assert.equal(answer.status, status);
      announces(answer);
    }
    for (const other of [
      await stage.send('POST', '/old'),
      await stage.send('DELETE', '/old'),
      await stage.send('GET', '/who'),
    ])
      for (const name of ['deprecation', 'sunset', 'link']) assert.equal(other.headers[name], undefined);
  });

  it('exposes the headers to other origins', async () => {
    stage.origins = ['https://app.example'];
    const { headers } = await stage.send('GET', '/old', { headers: { origin: 'https://app.example' } });
    for (const name of ['Deprecation', 'Sunset', 'Link'])
      assert.ok(String(headers['access-control-expose-headers']).split(', ').includes(name), name);
  });

  it('is marked in the API description and in the capabilities', async () => {
    const { json } = await stage.send('GET', '/openapi.json', { token: null });
    const { get, post } = json.paths['/old'];
    assert.equal(get.deprecated, true);
    assert.match(get.description, new RegExp(`Deprecated since ${deprecated.since}; there until ${dayIn(364)}\\. `));
    assert.match(get.description, /Use `stub\.records\.list` in its place\./);
    assert.equal(post.deprecated, undefined);
    const marked = get.parameters.map((one: { name: string; deprecated?: boolean }) => [one.name, one.deprecated]);
    assert.deepEqual(Object.fromEntries(marked), { ...Object.fromEntries(marked), take: undefined, limit: true });
    const { operations } = (await stage.send('GET', '/capabilities', { token: null })).json;
    const found = (id: string) => operations.find((one: { operationId: string }) => one.operationId === id).deprecated;
    const { documentation, ...shown } = deprecated;
    assert.deepEqual(found('stub.old.get'), shown);
    assert.equal(found('stub.old.create'), null);
  });

  it('reports its clients to administrators, and its calls to operators', async () => {
    const asAdministrator = async () => ({ token: await stage.token({ scope: 'setup:read' }) });
    assert.equal((await stage.send('GET', '/deprecations')).json.code, 'SCOPE_INSUFFICIENT');
    stage.permissions = [];
    const refused = await stage.send('GET', '/deprecations', await asAdministrator());
    assert.equal(refused.json.code, 'METADATA_PERMISSION_DENIED');
    stage.permissions = ['metadataRead'];
    await stage.send('GET', '/old', { token: await stage.token({ client_id: 'other-client' }) });
    const listed = async (): Promise<Answer> => stage.send('GET', '/deprecations', await asAdministrator());
    let answer = await listed();
    for (let tries = 0; tries < 50 && answer.json.records[0]?.clients.length !== 2; tries++) {
      await setTimeout(100);
      answer = await listed();
    }
    const [{ clients, ...one }, ...others] = answer.json.records;
    assert.deepEqual(one, {
      operationId: 'stub.old.get',
      method: 'GET',
      path: '/old',
      since: deprecated.since,
      sunset: deprecated.sunset,
      replacement: 'stub.records.list',
      documentation: `${stage.baseUrl}/api/v1/versions/1.0.0/docs/guides/move-to-lists`,
    });
    assert.deepEqual(others, []);
    const ids = clients.map(({ clientId }: { clientId: string }) => clientId);
    assert.deepEqual(ids.toSorted(), ['other-client', 'test-client']);
    const { text } = await stage.send('GET', '//metrics', { token: null });
    const counted = Number(/^erp_deprecated_requests_total\{operation="stub\.old\.get"[^}]*\} (\d+)$/m.exec(text)?.[1]);
    assert.ok(counted > stage.used.length, 'those without a sign-in as well');
  });

  it('is 404 from its sunset on, like an unknown operation', async () => {
    const now = platformTime();
    const token = await stage.token({}, { expiresIn: 2 * 365 * 86_400 });
    const sunset = Date.parse(deprecated.sunset);
    const move = (time: number): void => correctPlatformTime(time, time);
    try {
      move(sunset - 60_000);
      assert.equal((await stage.send('GET', '/old', { token })).status, 200);
      move(sunset);
      const gone = await stage.send('GET', '/old', { token });
      const never = await stage.send('GET', '/never', { token });
      assert.deepEqual([gone.status, gone.json.code], [404, 'ROUTE_NOT_FOUND']);
      assert.deepEqual([never.status, never.json.message], [404, gone.json.message]);
      assert.equal(gone.headers['sunset'], undefined);
      assert.equal((await stage.send('HEAD', '/old', { token })).status, 404);
      assert.equal((await stage.send('POST', '/old', { token })).status, 200, 'the other method of its path stays');
      const other = await stage.send('PUT', '/old', { token });
      assert.deepEqual([other.status, other.headers['allow']], [405, 'POST, OPTIONS']);
    } finally {
      move(now);
    }
  });
});
