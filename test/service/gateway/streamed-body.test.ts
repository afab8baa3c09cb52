/** Bodies that are streamed: what is checked before the first byte, while they arrive, and what their service hears. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { fingerprint } from '../../../lib/json/fingerprint.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { until } from '../../support/until.ts';
import { answerOf, digestOf, type StreamedStage, startStreamedStage } from './streamed-service.ts';

const BYTES = randomBytes(3 * 1024 * 1024);
const KEY = { 'idempotency-key': 'test-key-1' };

describe('A streamed body', function () {
  this.timeout(30_000);
  let streamed: StreamedStage;
  before(async () => {
    streamed = await startStreamedStage();
  });
  after(() => streamed.stage.stop());
  beforeEach(() => {
    streamed.calls.length = 0;
    streamed.refuse = null;
  });
  const file = (key: unknown): string => join(streamed.folder, 'files', String(key));
  const incomplete = (): string[] => readdirSync(join(streamed.folder, 'files', '.incomplete'));
  const upload = async (bytes: Buffer, headers: Record<string, string>, path = '/files', method = 'POST') => {
    const request = await streamed.open(method, path, headers);
    request.end(bytes);
    return answerOf(request);
  };

  it('is stored, and its service concludes', async () => {
    const headers = { ...KEY, ...digestOf(BYTES), 'content-type': 'image/png' };
    const { status, json } = await upload(BYTES, headers);
    assert.equal(status, 201, JSON.stringify(json));
    assert.ok(readFileSync(file(json['key'])).equals(BYTES));
    const [first, second] = streamed.calls;
    const sha256 = Buffer.from(digestOf(BYTES)['content-digest']!.slice(9, -1), 'base64').toString('hex');
    assert.deepEqual(first?.body, { contentType: 'image/png', bytes: BYTES.length, sha256 });
    assert.deepEqual(second?.body, {
      ...first?.body,
      received: { key: json['key'], bytes: BYTES.length, sha256, wholeSha256: null },
    });
  });

  it('has the fingerprint of the same bytes in one piece', async () => {
    await upload(BYTES, { ...KEY, ...digestOf(BYTES) });
    const none = {
      ifMatch: undefined,
      expectedRevision: undefined,
      duplicateConfirmation: undefined,
      agentRunId: undefined,
    };
    const expected = fingerprint({ method: 'POST', path: '/api/v1/files', query: [], ...none, body: BYTES });
    assert.deepEqual(
      streamed.calls.map((call) => call.fingerprint),
      [expected, expected],
    );
  });

  it('may be empty, or of unknown length', async () => {
    const empty = await upload(Buffer.alloc(0), { ...KEY, ...digestOf(Buffer.alloc(0)) });
    assert.deepEqual([empty.status, empty.json['bytes']], [201, 0]);
    const chunked = await streamed.open('POST', '/files', {
      ...KEY,
      ...digestOf(BYTES),
      'transfer-encoding': 'chunked',
    });
    for (let at = 0; at < BYTES.length; at += 100_000) chunked.write(BYTES.subarray(at, at + 100_000));
    chunked.end();
    assert.deepEqual((await answerOf(chunked)).json['bytes'], BYTES.length);
    assert.equal(streamed.calls.at(-1)?.body.bytes, null);
  });

  it('is refused before a byte is received', async () => {
    const digest = digestOf(BYTES);
    const refusals: [string, Record<string, string>, string, number, string][] = [
      ['/nope', {}, 'POST', 404, 'ROUTE_NOT_FOUND'],
      ['/files', digest, 'POST', 400, 'IDEMPOTENCY_KEY_REQUIRED'],
      ['/files', KEY, 'POST', 400, 'PARAMETER_REQUIRED'],
      ['/files', { ...KEY, 'content-digest': 'sha-512=:x:' }, 'POST', 400, 'PARAMETER_INVALID'],
      ['/files', { ...KEY, ...digest, 'content-encoding': 'gzip' }, 'POST', 415, 'MEDIA_TYPE_UNSUPPORTED'],
      ['/uploads/a', { 'content-type': 'text/plain' }, 'PATCH', 415, 'MEDIA_TYPE_UNSUPPORTED'],
      [
        '/uploads/a',
        { 'content-type': 'application/offset+octet-stream', 'content-length': String(65 * 1024 * 1024) },
        'PATCH',
        413,
        'REQUEST_TOO_LARGE',
      ],
      ['/files', { ...KEY, ...digest, authorization: 'Bearer x' }, 'POST', 401, 'TOKEN_INVALID'],
    ];
    for (const [path, headers, method, status, code] of refusals) {
      const request = await streamed.open(method, path, {
        'content-length': '1000',
        expect: '100-continue',
        ...headers,
      });
      let invited = false;
      request.on('continue', () => {
        invited = true;
      });
      request.flushHeaders();
      const answer = await answerOf(request);
      request.destroy();
      assert.deepEqual([answer.status, answer.json['code'], invited], [status, code, false]);
    }
    assert.deepEqual(streamed.calls, []);
  });

  it('waits with 100-continue for the leave of its service', async () => {
    streamed.refuse = () => {
      throw new PlatformError('RECORD_NOT_FOUND', 'There is no such record.');
    };
    const open = () =>
      streamed.open('POST', '/files', {
        ...KEY,
        ...digestOf(BYTES),
        expect: '100-continue',
        'content-length': String(BYTES.length),
      });
    const refused = await open();
    refused.flushHeaders();
    assert.equal((await answerOf(refused)).status, 404);
    refused.destroy();
    streamed.refuse = null;
    const request = await open();
    request.flushHeaders();
    await once(request, 'continue');
    request.end(BYTES);
    assert.equal((await answerOf(request)).status, 201);
  });

  it('is not kept with another digest than declared', async () => {
    const { status, json } = await upload(BYTES, { ...KEY, ...digestOf(randomBytes(3)) });
    assert.deepEqual([status, json['code']], [409, 'UPLOAD_CHECKSUM_MISMATCH']);
    const { received } = streamed.calls[1]!.body;
    assert.deepEqual(received, { key: received?.key, mayBeStored: false, failed: 'UPLOAD_CHECKSUM_MISMATCH' });
    assert.ok(!existsSync(file(received?.key)));
    assert.deepEqual(incomplete(), []);
  });

  it('is not kept when its client leaves, which its service hears', async () => {
    const request = await streamed.open('POST', '/files', {
      ...KEY,
      ...digestOf(BYTES),
      'content-length': String(BYTES.length),
    });
    request.on('error', () => {});
    request.write(BYTES.subarray(0, 1_000_000));
    await until(() => existsSync(join(streamed.folder, 'files', '.incomplete')) && incomplete().length === 1);
    request.destroy();
    await until(() => streamed.calls.length === 2);
    const { received } = streamed.calls[1]!.body;
    assert.deepEqual(received, { key: received?.key, mayBeStored: false, failed: null });
    assert.deepEqual(incomplete(), []);
  });

  it('is ended when its client sends nothing for the idle time of the row', async () => {
    const request = await streamed.open('POST', '/files', {
      ...KEY,
      ...digestOf(BYTES),
      'content-length': String(BYTES.length),
    });
    request.on('error', () => {});
    const answered = answerOf(request);
    let sentAt = 0;
    // For longer than the idle time, which begins anew with each piece.
    for (let piece = 0; piece < 20; piece++) {
      request.write(BYTES.subarray(piece * 100_000, (piece + 1) * 100_000));
      sentAt = performance.now();
      await pause(100);
    }
    const { status, json } = await answered;
    assert.deepEqual([status, json['message']], [400, 'The request was not received in time.']);
    const idle = performance.now() - sentAt;
    assert.ok(idle > 1_400, `${idle} ms after the last piece`);
    request.destroy();
    await until(() => incomplete().length === 0);
  });

  it('is ended when its client sends less than the minimum rate', async () => {
    const request = await streamed.open('POST', '/files', {
      ...KEY,
      ...digestOf(BYTES),
      'content-length': String(BYTES.length),
    });
    request.on('error', () => {});
    const began = performance.now();
    const writing = setInterval(() => request.write('x'), 100);
    const { status, json } = await answerOf(request).finally(() => clearInterval(writing));
    assert.deepEqual([status, json['message']], [400, 'The request was not received in time.']);
    assert.ok(performance.now() - began > 1_400);
    request.destroy();
  });

  it('is ended by the time limit of the row, though bytes arrive', async () => {
    const request = await streamed.open('POST', '/hurried', { 'content-length': String(BYTES.length) });
    request.on('error', () => {});
    const writing = setInterval(() => request.write('x'), 100);
    const { status, json } = await answerOf(request).finally(() => clearInterval(writing));
    assert.deepEqual([status, json['message']], [400, 'The request was not received in time.']);
    request.destroy();
  });

  it('has places of its own: so many of one caller at a time', async () => {
    const held = [];
    for (let i = 0; i < LIMITS.streamed_bodies_of_caller_max; i++) {
      const request = await streamed.open('POST', '/files', { ...KEY, ...digestOf(BYTES), 'content-length': '10' });
      request.on('error', () => {});
      request.flushHeaders();
      held.push(request);
    }
    await until(() => streamed.calls.length === held.length);
    const refused = await upload(BYTES, { ...KEY, ...digestOf(BYTES) });
    assert.deepEqual([refused.status, refused.json['code']], [429, 'CONCURRENCY_LIMIT_EXCEEDED']);
    const { text } = await streamed.stage.send('GET', '//metrics', { token: null });
    assert.match(text, new RegExp(`erp_http_streams\\{kind="body"\\} ${held.length}`));
    for (const request of held) request.destroy();
    await until(() => streamed.calls.length === 2 * held.length);
    assert.equal((await upload(BYTES, { ...KEY, ...digestOf(BYTES) })).status, 201);
  });
});
