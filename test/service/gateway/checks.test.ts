import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { type Answer, dailyLimit, type Stage, startStage, TENANT, USER } from './stage.ts';

const isError = (answer: Answer, status: number, code: string): void => {
  assert.equal(answer.json?.code, code, `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.equal(answer.status, status);
  assert.equal(answer.json.status, status);
  assert.equal(answer.json.requestId, answer.headers['x-request-id']);
  assert.equal(typeof answer.json.message, 'string');
  assert.equal(typeof answer.json.retryable, 'boolean');
  assert.match(answer.json.type, new RegExp(`/api/v1/versions/1\\.0\\.0/docs/errors/${code}$`));
};

const KEY = { 'idempotency-key': 'test-key-1' };

describe('The edge: order and form of checks', () => {
  let stage: Stage;

  before(async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '1000000', RATE_ANONYMOUS_REQUESTS: '1000000' });
  });
  after(() => stage.stop());
  beforeEach(() => {
    stage.answer = (call) => ({ body: { call } });
  });

  describe('headers', () => {
    it('are on every response, error or not', async () => {
      const answers = [
        await stage.send('GET', '/stub/Account'),
        await stage.send('GET', '/nope'),
        await stage.send('PUT', '/stub/Account'),
        await stage.send('GET', '/stub/Account', { token: null }),
        await stage.send('POST', '/stub/Account', { body: 'x'.repeat(2_000_000), headers: KEY }),
        await stage.send('GET', '/scopes', { token: null }),
        await stage.send('OPTIONS', '/stub/Account', { token: null }),
        await stage.send('GET', '//healthz', { token: null }),
        await stage.send('GET', '//nowhere', { token: null }),
      ];
      for (const { headers, status } of answers) {
        assert.match(String(headers['x-request-id']), /^req_[0-9A-HJKMNP-TV-Z]{26}$/, String(status));
        assert.match(String(headers['x-ratelimit-remaining']), /^\d+$/, String(status));
        assert.equal(headers['x-api-version'], '1.0.0');
        assert.match(String(headers['cache-control']), /^(no-store|public, max-age=300)$/);
        const isPublic = headers['cache-control'] !== 'no-store';
        assert.match(String(headers.vary), isPublic ? /^Accept-Encoding$/ : /^Authorization, Accept/);
      }
      assert.equal(new Set(answers.map(({ headers }) => headers['x-request-id'])).size, answers.length);
    });

    it('never echo an inbound X-Request-Id, which services see as clientRequestId', async () => {
      stage.answer = (_call, context, meta) => ({ body: { ...context, traceparent: meta['traceparent'] } });
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const answer = await stage.send('GET', '/stub/Account', { headers: { 'x-request-id': 'mine-1', traceparent } });
      assert.notEqual(answer.headers['x-request-id'], 'mine-1');
      assert.equal(answer.json.clientRequestId, 'mine-1');
      assert.equal(answer.json.requestId, answer.headers['x-request-id']);
      assert.equal(answer.json.traceparent, traceparent);
      const bad = await stage.send('GET', '/stub/Account', { headers: { 'x-request-id': 'a b<>', traceparent: 'zz' } });
      assert.equal(bad.json.clientRequestId, null);
      assert.equal(bad.json.traceparent, undefined);
    });

    it('carry RateLimit and RateLimit-Policy', async () => {
      const { headers } = await stage.send('GET', '/stub/Account');
      assert.match(String(headers['ratelimit-policy']), /^"connection";q=1000000;w=60, "tenant";q=30000;w=60/);
      assert.match(String(headers['ratelimit']), /^"tenant";r=\d+;t=\d+$/);
    });
  });

  describe('route and method', () => {
    it('answers 404 for an unknown path', async () => {
      for (const path of ['/nope', '/stub', '/stub/', '/stub/a/b/c', '/stub//x'])
        isError(await stage.send('GET', path), 404, 'ROUTE_NOT_FOUND');
    });

    it('answers 405 with Allow for another method', async () => {
      const answer = await stage.send('PUT', '/stub/Account');
      isError(answer, 405, 'METHOD_NOT_ALLOWED');
      assert.equal(answer.headers.allow, 'GET, POST, HEAD, OPTIONS');
    });

    it('comes before authentication', async () => {
      isError(await stage.send('GET', '/nope', { token: null }), 404, 'ROUTE_NOT_FOUND');
    });

    it('serves HEAD for every GET, without a body but with its length', async () => {
      const get = await stage.send('GET', '/stub/Account');
      const head = await stage.send('HEAD', '/stub/Account');
      assert.equal(head.status, 200);
      assert.equal(head.body.length, 0);
      assert.equal(head.headers['content-length'], get.headers['content-length']);
    });

    it('answers an address over 16 KiB with 400 URI_TOO_LONG', async () => {
      isError(await stage.send('GET', `/stub/Account?search=${'a'.repeat(17_000)}`), 400, 'URI_TOO_LONG');
      assert.equal((await stage.send('GET', `/stub/Account?search=${'a'.repeat(16_000)}`)).status, 200);
    });
  });

  describe('scope', () => {
    it('answers 403 with required and granted scopes, and the challenge', async () => {
      const token = await stage.token({ scope: 'data:read' });
      const answer = await stage.send('POST', '/stub/Account', { token, body: 'not json' });
      isError(answer, 403, 'SCOPE_INSUFFICIENT');
      assert.deepEqual(answer.json.details, { required: ['data:write'], granted: ['data:read'], layer: 'scope' });
      assert.equal(answer.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="data:write"');
    });
  });

  describe('of a check', () => {
    const check = async (scope: string, body: unknown): Promise<Answer> =>
      stage.send('POST', '/stub/Account/check', { token: await stage.token({ scope }), body });

    it('requires the scope of the checked operation, and one of them before the body is read', async () => {
      const none = await check('data:read', 'not json');
      isError(none, 403, 'SCOPE_INSUFFICIENT');
      assert.deepEqual(none.json.details.required, ['data:write', 'data:delete']);
      const other = await check('data:write', { operation: 'delete' });
      isError(other, 403, 'SCOPE_INSUFFICIENT');
      assert.deepEqual(other.json.details.required, ['data:delete']);
      assert.equal((await check('data:delete', { operation: 'delete' })).status, 200);
    });

    it('lists the possible operations', async () => {
      for (const [operation, code] of [
        [undefined, 'PARAMETER_REQUIRED'],
        ['toString', 'PARAMETER_INVALID'],
        [['delete'], 'PARAMETER_INVALID'],
      ] as const) {
        const answer = await check('data:delete', { operation });
        isError(answer, 400, code);
        assert.deepEqual(
          answer.json.errors.map(({ pointer, message }: Record<string, string>) => [pointer, message]),
          [['/operation', 'operation must be one of update, delete, access.']],
        );
      }
    });

    it('has the body limit and cost of the operation itself', async () => {
      const long = await check('data:delete', { operation: 'delete', id: 'x'.repeat(64 * 1024) });
      isError(long, 413, 'REQUEST_TOO_LARGE');
      stage.grant = dailyLimit(100);
      const token = await stage.token({ grant_id: 'check-cost', tenant_id: randomUUID() });
      const left = async (operation: string): Promise<number> => {
        const answer = await stage.send('POST', '/stub/Account/check', { token, body: { operation } });
        return Number(answer.headers['x-ratelimit-remaining']);
      };
      const before = await left('access');
      assert.equal(before - (await left('access')), 1);
      assert.equal(before - 1 - (await left('delete')), 2);
      stage.grant = {};
    });

    it('is named by the operation that it tries out, to those who still send checkOnly there', async () => {
      const answer = await stage.send('DELETE', '/stub/Account/1?checkOnly=true', {
        headers: { ...KEY, 'if-match': '"1"' },
      });
      isError(answer, 400, 'PARAMETER_UNKNOWN');
      assert.match(
        answer.json.message,
        /Try it out with stub\.records\.check: POST \/stub\/\{objectApiName\}\/check\.$/,
      );
      assert.equal(answer.json.errors[0].pointer, 'query:checkOnly');
    });
  });

  describe('step-up', () => {
    const MFA = 'https://refeds.org/profile/mfa';
    const now = (): number => Math.floor(Date.now() / 1_000);
    let grants = 0;
    before(() => {
      stage.permissions = ['apiEnabled', 'manageUsers'];
    });
    const send = async (
      claims: object,
      { required = true, path = '/access/User', method = 'PUT', body = undefined as unknown } = {},
    ): Promise<Answer> => {
      stage.grant = { stepUp: required };
      const token = await stage.token({ grant_id: `step-up-${grants++}`, ...claims });
      return stage.send(method, path, { token, ...(body === undefined ? {} : { body }) });
    };
    after(() => {
      stage.grant = {};
    });

    it('answers 401 with the challenge of RFC 9470 unless a recent sign-in had two factors', async () => {
      const recent = { auth_time: now() - 890, acr: MFA };
      for (const path of ['/access/User', '/access/Us%65r', '/access']) {
        for (const claims of [
          {},
          { acr: MFA },
          { auth_time: now() },
          { auth_time: now(), acr: 'https://refeds.org/profile/sfa' },
          { auth_time: now() - 910, acr: MFA },
          { auth_time: String(now()), acr: MFA },
        ]) {
          const answer = await send(claims, { path });
          isError(answer, 401, 'AUTHENTICATION_INSUFFICIENT');
          assert.deepEqual(answer.json.details, { acrValues: [MFA], maxAgeSeconds: 900 });
          assert.match(
            String(answer.headers['www-authenticate']),
            /^Bearer error="insufficient_user_authentication", error_description="[^"]+", acr_values="https:\/\/refeds.org\/profile\/mfa", max_age=900, resource_metadata="/,
          );
        }
        assert.equal((await send(recent, { path })).status, 200);
      }
    });

    it('is not required of callers who may not write users: the service refuses them', async () => {
      stage.permissions = ['apiEnabled'];
      assert.equal((await send({})).status, 200, 'the service answers');
      isError(await send({}, { path: '/access' }), 401, 'AUTHENTICATION_INSUFFICIENT');
      stage.permissions = ['apiEnabled', 'manageUsers'];
      isError(await send({}), 401, 'AUTHENTICATION_INSUFFICIENT');
    });

    it('is not required for a dry run', async () => {
      const check = { method: 'POST', path: '/stub/User/check', body: { operation: 'access' } };
      assert.equal((await send({}, check)).status, 200);
      isError(await send({}, { path: '/access/User?checkOnly=true' }), 401, 'AUTHENTICATION_INSUFFICIENT');
    });

    it('does not apply to other objects, operations, and exempt grants', async () => {
      assert.equal((await send({}, { path: '/access/Account' })).status, 200);
      assert.equal((await send({}, { required: false })).status, 200);
      stage.grant = { stepUp: true };
      const token = await stage.token({ grant_id: `step-up-${grants++}` });
      assert.equal((await stage.send('GET', '/stub/User', { token })).status, 200);
    });
  });

  describe('system permission', () => {
    const denied = (answer: Answer): void => {
      isError(answer, 403, 'METADATA_PERMISSION_DENIED');
      assert.deepEqual(answer.json.details, { layer: 'objectPermission', permission: 'metadataRead' });
    };

    it('is required before any body is received', async () => {
      stage.permissions = ['apiEnabled', 'viewAudit'];
      denied(await stage.send('POST', '/configuration', { body: ']'.repeat(1024 * 1024) }));
      denied(await stage.send('POST', '/configuration', { body: 'not json', headers: { 'content-type': 'x/y' } }));
      // Headers alone: the answer comes although the body never does.
      const head = 'POST /api/v1/configuration HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n';
      const answer = await stage.raw(`${head}Authorization: Bearer ${await stage.token()}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1.1 403 .*"METADATA_PERMISSION_DENIED"/s);
    });

    it('is satisfied by a recent grant, or one that implies it', async () => {
      stage.permissions = [];
      denied(await stage.send('POST', '/configuration', { body: {} }));
      stage.permissions = ['metadataManage'];
      assert.equal((await stage.send('POST', '/configuration', { body: {} })).status, 200);
    });
  });

  describe('query parameters', () => {
    it('arrive typed by their schema', async () => {
      const filters = encodeURIComponent('{"logic":"and","conditions":[]}');
      const answer = await stage.send(
        'GET',
        `/stub/A?take=5&includeTotal=true&direction=asc&filters=${filters}&search=a+b%2Bc`,
      );
      assert.deepEqual(answer.json.call.query, {
        take: 5,
        includeTotal: true,
        direction: 'asc',
        filters: { logic: 'and', conditions: [] },
        search: 'a b+c',
      });
    });

    it('are refused when unknown, repeated, mistyped or malformed, all at once', async () => {
      const answer = await stage.send(
        'GET',
        '/stub/A?tak=5&take=1&take=2&includeTotal=yes&direction=up&filters=%7B%22a%22%3A1%2C%22a%22%3A2%7D&search=%FF',
      );
      assert.equal(answer.status, 400);
      assert.deepEqual(
        answer.json.errors.map((one: { pointer: string; code: string }) => `${one.pointer} ${one.code}`).sort(),
        [
          'query:direction PARAMETER_INVALID',
          'query:filters PARAMETER_INVALID',
          'query:includeTotal PARAMETER_INVALID',
          'query:search PARAMETER_INVALID',
          'query:tak PARAMETER_UNKNOWN',
          'query:take PARAMETER_INVALID',
        ],
      );
    });

    it('are refused individually with the matching code', async () => {
      isError(await stage.send('GET', '/stub/A?x=1'), 400, 'PARAMETER_UNKNOWN');
      for (const query of [
        'take=0',
        'take=1.5',
        'take=',
        'take=abc',
        'take=99999999999999999999',
        'search=%00',
        'filters=%7B',
        'filters=',
        '%',
        'search=%E0%A4%A',
      ])
        assert.equal((await stage.send('GET', `/stub/A?${query}`)).status, 400, query);
    });
  });

  describe('path parameters', () => {
    it('arrive decoded', async () => {
      const answer = await stage.send('GET', '/stub/A%22%3B%20DROP%20TABLE/x%2Fy');
      assert.deepEqual(answer.json.call.path, { objectApiName: 'A"; DROP TABLE', id: 'x/y' });
    });

    it('that are not UTF-8 are 400', async () => {
      for (const raw of ['%', '%zz', '%ff', '%00'])
        isError(await stage.send('GET', `/stub/${raw}`), 400, 'PARAMETER_INVALID');
    });
  });

  describe('mutations', () => {
    const body = { name: 'x' };

    it('need an Idempotency-Key of 8 to 200 of the allowed characters', async () => {
      isError(await stage.send('POST', '/stub/A', { body }), 400, 'IDEMPOTENCY_KEY_REQUIRED');
      for (const key of ['short77', 'a'.repeat(201), 'with space', 'ümlaut-key', 'semi;colon'])
        isError(
          await stage.send('POST', '/stub/A', {
            body,
            headers: { 'idempotency-key': Buffer.from(key).toString('latin1') },
          }),
          400,
          'IDEMPOTENCY_KEY_INVALID',
        );
      for (const key of ['a'.repeat(8), 'a'.repeat(200), 'A.b-c_d:9'])
        assert.equal((await stage.send('POST', '/stub/A', { body, headers: { 'idempotency-key': key } })).status, 201);
    });

    it('carry a fingerprint that is the same for the same request', async () => {
      const one = await stage.send('POST', '/stub/A', { body: '{"a":1,"b":2.50}', headers: KEY });
      const two = await stage.send('POST', '/stub/A', { body: '{ "b":2.5, "a":1 }', headers: KEY });
      const other = await stage.send('POST', '/stub/A', { body: '{"a":1,"b":2.51}', headers: KEY });
      assert.equal(one.json.call.fingerprint, two.json.call.fingerprint);
      assert.notEqual(one.json.call.fingerprint, other.json.call.fingerprint);
    });

    it('with a precondition need a strong If-Match, never * or a weak one', async () => {
      const patch = (headers: Record<string, string>) =>
        stage.send('PATCH', '/stub/A/1', { body, headers: { ...KEY, ...headers } });
      isError(await patch({}), 400, 'IF_MATCH_REQUIRED');
      for (const tag of ['*', 'W/"1"', '1', '"1', '"1",*', '""1""'])
        isError(await patch({ 'if-match': tag }), 400, 'IF_MATCH_INVALID');
      assert.equal((await patch({ 'if-match': '"1", "2"' })).json.call.headers.ifMatch, '"1", "2"');
    });

    it('are handed on when the row declares them', async () => {
      const headers = { ...KEY, 'x-duplicate-confirmation': 'dct_1', 'if-none-match': '"1"', 'accept-language': 'de' };
      const call = async (method: string, path: string, more = {}) =>
        (await stage.send(method, path, { headers, ...more })).json.call;
      assert.deepEqual((await call('GET', '/stub/A/1')).headers, {});
      const created = await call('POST', '/stub/A', { body: {} });
      assert.deepEqual(created.headers, { idempotencyKey: KEY['idempotency-key'], duplicateConfirmation: 'dct_1' });
    });

    it('on revisions need X-Expected-Revision or its query parameter, and both must agree', async () => {
      const publish = (query: string, headers: Record<string, string> = {}) =>
        stage.send('POST', `/revisions/1/publish${query}`, { headers: { ...KEY, ...headers } });
      isError(await publish(''), 400, 'EXPECTED_REVISION_REQUIRED');
      isError(await publish('?expectedRevision=3', { 'x-expected-revision': '4' }), 400, 'PARAMETER_CONFLICT');
      isError(await publish('', { 'x-expected-revision': 'x' }), 400, 'PARAMETER_INVALID');
      assert.equal((await publish('?expectedRevision=3')).json.call.headers.expectedRevision, 3);
      assert.equal((await publish('', { 'x-expected-revision': '4' })).json.call.headers.expectedRevision, 4);
    });

    it('report all violations of the form at once', async () => {
      const answer = await stage.send('PATCH', '/stub/A/1?x=1', { body: '[1]', headers: { 'x-agent-run-id': 'no' } });
      assert.deepEqual(answer.json.errors.map((one: { code: string }) => one.code).sort(), [
        'IDEMPOTENCY_KEY_REQUIRED',
        'IF_MATCH_REQUIRED',
        'PARAMETER_INVALID',
        'PARAMETER_INVALID',
        'PARAMETER_UNKNOWN',
      ]);
    });
  });

  describe('bodies', () => {
    const post = (body: unknown, headers: Record<string, string> = {}) =>
      stage.send('POST', '/stub/A', { body, headers: { ...KEY, ...headers } });
    const query = (body: unknown) => stage.send('POST', '/stub/A/query', { body });

    it('are required where the operation needs one', async () => {
      isError(await stage.send('POST', '/stub/A', { headers: KEY }), 400, 'BODY_REQUIRED');
      isError(await post('', { 'content-type': 'application/json' }), 400, 'BODY_REQUIRED');
    });

    it('are refused where the operation takes none', async () => {
      isError(await stage.send('GET', '/stub/A', { body: '{}' }), 400, 'REQUEST_MALFORMED');
      const answer = await stage.send('DELETE', '/stub/A/1', {
        body: '{"a":1}',
        headers: { ...KEY, 'if-match': '"1"' },
      });
      isError(answer, 400, 'REQUEST_MALFORMED');
    });

    it('that are not strict JSON are 400 REQUEST_MALFORMED', async () => {
      for (const text of [
        '{',
        'nul',
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":99999999999999999999}',
        '{"__proto__":{}}',
        '{"a":"\\u0000"}',
        '"\\ud800"',
      ])
        isError(await post(text), 400, 'REQUEST_MALFORMED');
      isError(await post(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), 400, 'REQUEST_MALFORMED');
      const deep = await post(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`);
      isError(deep, 400, 'REQUEST_MALFORMED');
      assert.deepEqual(deep.json.details, { maxDepth: 32 });
    });

    it('that are JSON but no object are 400', async () => {
      for (const text of ['[]', '1', 'null', '"x"']) isError(await post(text), 400, 'PARAMETER_INVALID');
    });

    it('are validated against the schema of the operation, all violations at once with pointers', async () => {
      isError(await query({ name: 'x', more: 1 }), 400, 'BODY_PROPERTY_UNKNOWN');
      isError(await query({}), 400, 'PARAMETER_REQUIRED');
      isError(await query({ name: 1 }), 400, 'PARAMETER_INVALID');
      const answer = await query({ take: 'x', nested: { b: 1 }, 'od/d~': 1 });
      assert.deepEqual(
        answer.json.errors.map((one: { pointer: string; code: string }) => `${one.pointer} ${one.code}`).sort(),
        [
          '/name PARAMETER_REQUIRED',
          '/nested/a PARAMETER_REQUIRED',
          '/nested/b PARAMETER_INVALID',
          '/od~1d~0 BODY_PROPERTY_UNKNOWN',
          '/take PARAMETER_INVALID',
        ],
      );
    });

    it('of another media type, charset or encoding are 415', async () => {
      for (const type of [
        'text/plain',
        'application/xml',
        'application/json; charset=latin1',
        'application/merge-patch+json',
        'json',
      ])
        isError(await post('{}', { 'content-type': type }), 415, 'MEDIA_TYPE_UNSUPPORTED');
      isError(await post('{}', { 'content-encoding': 'br' }), 415, 'MEDIA_TYPE_UNSUPPORTED');
      assert.equal((await post('{}', { 'content-type': 'application/json; charset=UTF-8' })).status, 201);
      const patch = await stage.send('PATCH', '/stub/A/1', {
        body: '{}',
        headers: { ...KEY, 'if-match': '"1"', 'content-type': 'application/merge-patch+json' },
      });
      assert.equal(patch.status, 200);
    });

    it('over the limit are 413 with maxBytes, whether announced, chunked or compressed', async () => {
      const big = JSON.stringify({ a: 'x'.repeat(1024 * 1024) });
      const announced = await post(big);
      isError(announced, 413, 'REQUEST_TOO_LARGE');
      assert.deepEqual(announced.json.details, { maxBytes: 1024 * 1024 });
      isError(await post(big, { 'transfer-encoding': 'chunked' }), 413, 'REQUEST_TOO_LARGE');
      isError(await post(gzipSync(big), { 'content-encoding': 'gzip' }), 413, 'REQUEST_TOO_LARGE');
      assert.equal((await post(JSON.stringify({ a: 'x'.repeat(1024 * 1024 - 8) }))).status, 201, 'exactly the limit');
    });

    it('may be compressed with gzip; invalid gzip is 400', async () => {
      const answer = await post(gzipSync('{"a":1}'), { 'content-encoding': 'gzip' });
      assert.deepEqual(answer.json.call.body, { a: 1 });
      isError(await post('{"a":1}', { 'content-encoding': 'gzip' }), 400, 'REQUEST_MALFORMED');
    });

    it('that exceed the limit when decompressed are 413', async () => {
      stage.permissions = ['metadataRead'];
      const gzip = { 'content-encoding': 'gzip' };
      const bomb = gzipSync(JSON.stringify({ a: 'x'.repeat(7 * 1024 * 1024) }));
      const refused = await stage.send('POST', '/configuration', { body: bomb, headers: gzip });
      isError(refused, 413, 'REQUEST_TOO_LARGE');
      assert.deepEqual(refused.json.details, { maxExpansion: 100 });
      const items = Array.from({ length: 60_000 }, (_, i) => `fields/Field${i}__c.yaml: type: CustomField`);
      const large = gzipSync(JSON.stringify({ items }));
      assert.equal((await stage.send('POST', '/configuration', { body: large, headers: gzip })).status, 200);
    });

    it('sent after Expect: 100-continue are read, or refused before they are sent', async () => {
      const head = (token: string) =>
        `POST /api/v1/stub/A HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
        'Idempotency-Key: test-key-1\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n';
      const good = await stage.raw(`${head(await stage.token())}{"a":1}`);
      assert.match(good, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201/);
      assert.match(await stage.raw(`${head('x')}{"a":1}`), /^HTTP\/1\.1 401/);
    });

    it('of responses are compressed when large and the client accepts it', async () => {
      stage.answer = () => ({ body: { text: 'x'.repeat(5_000) }, headers: { ETag: '"k7"' } });
      const answer = await stage.send('GET', '/stub/A/1', { headers: { 'accept-encoding': 'gzip, br' } });
      assert.equal(answer.headers['content-encoding'], 'gzip');
      assert.equal(answer.headers.etag, '"k7"');
      assert.match(String(answer.headers.vary), /Accept-Encoding/);
      assert.equal(JSON.parse(gunzipSync(answer.body).toString()).text.length, 5_000);
      for (const encoding of ['identity', 'gzip;q=0', 'br'])
        assert.equal(
          (await stage.send('GET', '/stub/A/1', { headers: { 'accept-encoding': encoding } })).headers[
            'content-encoding'
          ],
          undefined,
        );
      stage.answer = () => ({ body: { text: 'small' } });
      const small = await stage.send('GET', '/stub/A/1', { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(small.headers['content-encoding'], undefined);
    });
  });

  describe('requests to services', () => {
    it('the request context identifies the caller, with no part taken from the request', async () => {
      stage.answer = (_call, context) => ({ body: context as object });
      const { json } = await stage.send('GET', '/stub/A', { headers: { 'x-tenant-id': 'evil', 'x-user-id': 'evil' } });
      assert.equal(json.tenantId, TENANT);
      assert.equal(json.userId, USER);
      assert.equal(json.channel, 'api');
      assert.ok(json.deadline > Date.now());
    });

    it('bytes are written unchanged, with the headers of the service', async () => {
      stage.answer = () => ({ body: Buffer.from('{"a":1.10}'), headers: { ETag: '"1"', Location: '/api/v1/x' } });
      const answer = await stage.send('POST', '/stub/A', { body: {}, headers: KEY });
      assert.equal(answer.status, 201);
      assert.equal(answer.text, '{"a":1.10}');
      assert.equal(answer.headers.etag, '"1"');
      assert.equal(answer.headers.location, '/api/v1/x');
    });

    it('304 and 204 have no body', async () => {
      stage.answer = () => ({ status: 304, headers: { ETag: '"1"' }, body: null });
      const answer = await stage.send('GET', '/stub/A/1', { headers: { 'if-none-match': '"1"' } });
      assert.equal(answer.status, 304);
      assert.equal(answer.headers.etag, '"1"');
      assert.equal(answer.headers['content-length'], undefined);
    });

    it('Accept with IEEE754Compatible=true is passed on', async () => {
      const answer = await stage.send('GET', '/stub/A', {
        headers: { accept: 'application/json;IEEE754Compatible=true' },
      });
      assert.equal(answer.json.call.ieee754Compatible, true);
    });
  });

  describe('errors', () => {
    it('of the catalogue pass through with details, violations and headers', async () => {
      stage.answer = () => {
        throw new PlatformError('IDEMPOTENCY_IN_PROGRESS', 'Wait.', { retryAfterSeconds: 1, details: { a: 1 } });
      };
      const answer = await stage.send('GET', '/stub/A');
      isError(answer, 409, 'IDEMPOTENCY_IN_PROGRESS');
      assert.equal(answer.headers['retry-after'], '1');
      assert.equal(answer.json.retryAfterSeconds, 1);
      assert.equal(answer.json.retryable, true);
      assert.deepEqual(answer.json.details, { a: 1 });
    });

    it('that are unexpected are 500 without details', async () => {
      stage.answer = () => {
        throw new TypeError('secret internals at /srv/platform/x.ts');
      };
      const answer = await stage.send('GET', '/stub/A');
      isError(answer, 500, 'INTERNAL_ERROR');
      assert.equal(answer.json.retryable, true);
      assert.ok(!answer.text.includes('secret'));
    });

    it('are problem+json when the client prefers it', async () => {
      const get = (accept: string) => stage.send('GET', '/nope', { headers: { accept } });
      const problem = await get('application/problem+json, application/json;q=0.5');
      assert.equal(problem.headers['content-type'], 'application/problem+json');
      assert.equal(problem.json.title, 'Operation not found');
      assert.equal(problem.json.detail, problem.json.message);
      assert.equal(problem.json.instance, `urn:request:${problem.json.requestId}`);
      for (const accept of ['application/problem+json;charset=utf-8', 'application/problem+json; version=1 ;q=0.9']) {
        const same = await get(accept);
        assert.equal(same.headers['content-type'], 'application/problem+json', accept);
      }
      for (const accept of ['*/*', 'application/json', 'application/json, application/problem+json;q=0.1']) {
        const plain = await get(accept);
        assert.equal(plain.headers['content-type'], 'application/json');
        assert.equal(plain.json.title, undefined);
      }
    });

    it('of an unavailable service are 503 with Retry-After, at once', async () => {
      const started = Date.now();
      const answer = await stage.send('GET', '/gone');
      isError(answer, 503, 'SERVICE_UNAVAILABLE');
      assert.equal(answer.headers['retry-after'], '1');
      assert.ok(Date.now() - started < 10_000, 'long before a call times out');
    });

    it('of HTTP itself are answered in the same form', async () => {
      for (const text of [
        'NONSENSE\r\n\r\n',
        'GET /api/v1/scopes HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n',
        `GET /api/v1/scopes HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(70_000)}\r\n\r\n`,
        'POST /api/v1/stub/A HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      ]) {
        const answer = await stage.raw(text);
        assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, text.slice(0, 40));
        assert.match(answer, /\r\nX-Request-Id: req_/);
        assert.equal(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)).code, 'REQUEST_MALFORMED');
      }
    });

    it('cannot be used to inject headers', async () => {
      const answer = await stage.raw(
        `GET /api/v1/stub/a%0d%0aSet-Cookie:%20x=1?x%0d%0aSet-Cookie:y=%0d%0a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: a%0d%0ab\r\nOrigin: http://x%0d%0aSet-Cookie:z\r\nAuthorization: Bearer ${await stage.token()}\r\n\r\n`,
      );
      assert.ok(!/^set-cookie/im.test(answer));
    });
  });
});
