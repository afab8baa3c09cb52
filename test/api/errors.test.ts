/** The section Errors of the specification, rule by rule. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATIONS } from '../../contracts/operations.ts';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { streamHeaders } from '../support/streams.ts';

const isError = (answer: Answer, status: number, code: keyof typeof CATALOGUE): void => {
  assert.equal(answer.body?.code, code, `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.equal(answer.status, status);
  assert.equal(answer.body.status, status);
  assert.equal(answer.body.requestId, answer.headers.get('x-request-id'));
  assert.equal(answer.body.retryable, 'retryable' in CATALOGUE[code]);
};

describe('Errors', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let stranger: Api;
  before(async () => {
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    stranger = api(platform.baseUrl);
  });
  after(() => platform?.stop());

  const account = async (): Promise<{ id: string; etag: string }> => {
    const created = await ada.post('/data/Account', { name: `Errors ${randomUUID()}` });
    assert.equal(created.status, 201, created.text);
    return { id: created.body.id, etag: created.headers.get('etag')! };
  };

  it('every operation is public or answers 401 without a token, in the one form', async () => {
    for (const { method, path, scopes } of OPERATIONS) {
      const answer = await stranger.send(method, path.replaceAll(/\{\w+\}/g, 'x'));
      if (scopes === 'public') assert.equal(answer.status, 200, path);
      else isError(answer, 401, 'TOKEN_MISSING');
    }
  });

  it('every operation refuses an unknown query parameter', async () => {
    for (const row of OPERATIONS) {
      const { method, path } = row;
      const at = `${path.replaceAll(/\{\w+\}/g, 'x')}?not_a_parameter=1`;
      const answer = await ada.send(method, at, undefined, { headers: streamHeaders(row) });
      assert.equal(answer.status, 400, `${method} ${path}: ${answer.text.slice(0, 200)}`);
      assert.ok(
        answer.body.errors.some((one: { pointer: string }) => one.pointer === 'query:not_a_parameter'),
        answer.text,
      );
    }
  });

  it('every mutation requires an Idempotency-Key', async () => {
    for (const row of OPERATIONS) {
      const { method, path, mutation, requestBody } = row;
      if (!mutation) continue;
      const answer = await ada.send(method, path.replaceAll(/\{\w+\}/g, 'x'), requestBody ? {} : undefined, {
        idempotencyKey: null,
        etag: '"1"',
        headers: streamHeaders(row),
      });
      assert.equal(answer.status, 400, answer.text);
      assert.ok(answer.body.errors.some((one: { code: string }) => one.code === 'IDEMPOTENCY_KEY_REQUIRED'));
    }
  });

  it('every operation with a body refuses one that is malformed, too large or of another type', async () => {
    for (const { method, path, requestBody } of OPERATIONS) {
      if (!requestBody || requestBody.kind === 'stream') continue;
      const at = path.replaceAll(/\{\w+\}/g, 'x');
      const send = (body: string, headers: Record<string, string> = {}) =>
        ada.send(method, at, body, { headers, etag: '"1"' });
      const malformed = await send('{"a":1,"a":2}');
      assert.equal(malformed.status, 400, malformed.text);
      assert.ok(malformed.body.errors.some((one: { code: string }) => one.code === 'REQUEST_MALFORMED'));
      isError(await send('{}', { 'content-type': 'text/plain' }), 415, 'MEDIA_TYPE_UNSUPPORTED');
      if (requestBody.maxBytes <= 4 * 1024 * 1024) {
        const large = await send(`{"a":"${'x'.repeat(requestBody.maxBytes)}"}`);
        isError(large, 413, 'REQUEST_TOO_LARGE');
        assert.deepEqual(large.body.details, { maxBytes: requestBody.maxBytes });
      }
    }
  });

  it('400: invalid request', async () => isError(await ada.get('/data/Account?take=x'), 400, 'PARAMETER_INVALID'));
  it('404: not available to this user', async () => {
    isError(await ada.get('/data/Nothing__c'), 404, 'OBJECT_NOT_FOUND');
    isError(await ada.get('/nothing'), 404, 'ROUTE_NOT_FOUND');
  });

  it('1. 412: a changed record is not overwritten', async () => {
    const { id, etag } = await account();
    const first = await ada.patch(`/data/Account/${id}`, { name: 'First' }, { etag });
    assert.equal(first.status, 200, first.text);
    const late = await ada.patch(`/data/Account/${id}`, { name: 'Late' }, { etag });
    isError(late, 412, 'ETAG_MISMATCH');
    assert.equal(late.body.details.currentETag, first.headers.get('etag'));
    isError(await ada.patch(`/data/Account/${id}`, { name: 'Force' }), 400, 'IF_MATCH_REQUIRED');
    isError(await ada.patch(`/data/Account/${id}`, { name: 'Force' }, { etag: '*' }), 400, 'IF_MATCH_INVALID');
  });

  it('2. 422: validation shows every violation', async () => {
    const answer = await ada.post('/data/Account', { nothing__c: 1, createdAt: '2026-01-01T00:00:00Z' });
    isError(answer, 422, 'VALIDATION_FAILED');
    assert.ok(answer.body.errors.length >= 2, answer.text);
    for (const one of answer.body.errors) assert.match(one.pointer, /^\//);
  });

  it('3. 409: a reused idempotency key with another body is incompatible', async () => {
    const idempotencyKey = `errors-${randomUUID()}`;
    const name = `Key ${idempotencyKey}`;
    const first = await ada.post('/data/Account', { name }, { idempotencyKey });
    assert.equal(first.status, 201, first.text);
    const again = await ada.post('/data/Account', { name }, { idempotencyKey });
    assert.equal(again.status, 201);
    assert.equal(again.body.id, first.body.id);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    isError(await ada.post('/data/Account', { name: 'Other' }, { idempotencyKey }), 409, 'IDEMPOTENCY_KEY_REUSED');
  });
});
