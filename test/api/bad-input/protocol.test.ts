/** Malformed HTTP itself: bytes that sockets of clients, proxies and attackers send. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { after, afterEach, before, describe, it } from 'mocha';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertHeaders, assertRefused, assertSound, picture, sendBytes } from './support.ts';

describe('bad input: the protocol', () => {
  let platform: TestPlatform;
  let token: string;
  let stored: Record<string, string>;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    token = await tokenFor(platform.baseUrl, 'sam');
    stored = await picture(platform);
  });
  after(() => platform?.stop());
  afterEach(async () => assert.deepEqual(await picture(platform), stored, 'something was written'));

  interface Head {
    method?: string;
    target?: string;
    version?: string;
    /** Header lines without their end; `Host`, `Authorization` and `Connection: close` come before them unless bare. */
    headers?: string[];
    bare?: boolean;
  }
  const bytes = (
    { method = 'GET', target = '/api/v1/objects', version = '1.1', headers = [], bare = false }: Head,
    body: string | Uint8Array = '',
  ): Buffer => {
    const own = bare ? [] : ['Host: localhost', `Authorization: Bearer ${token}`, 'Connection: close'];
    const head = [`${method} ${target} HTTP/${version}`, ...own, ...headers, '', ''].join('\r\n');
    return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
  };
  const write = (headers: string[], body: string | Uint8Array = '{}'): Buffer =>
    bytes(
      {
        method: 'POST',
        target: '/api/v1/data/Account',
        headers: ['Idempotency-Key: protocol-1', 'Content-Type: application/json', ...headers],
      },
      body,
    );
  const refused = async (sent: Buffer, about: string, expected?: ErrorCode | ErrorCode[]): Promise<void> => {
    const answers = await sendBytes(platform.baseUrl, sent);
    assert.equal(answers.length, 1, `${about}: ${answers.length} answers`);
    assertRefused(answers[0]!, about, expected);
  };
  const answered = async (sent: Buffer, about: string, status = 200): Promise<void> => {
    const answers = await sendBytes(platform.baseUrl, sent);
    assert.equal(answers.length, 1, `${about}: ${answers.length} answers`);
    assertHeaders(answers[0]!, about);
    assert.equal(answers[0]!.status, status, `${about}: ${answers[0]!.text}`);
  };

  it('a request has one host, one token and one content type', async () => {
    await refused(
      bytes({ bare: true, headers: ['Connection: close', `Authorization: Bearer ${token}`] }),
      'no Host',
      'REQUEST_MALFORMED',
    );
    for (const twice of ['Host: elsewhere', 'Authorization: Bearer x', 'HOST: localhost'])
      await refused(bytes({ headers: [twice] }), twice, 'REQUEST_MALFORMED');
    await refused(write(['content-type: text/plain', 'Content-Length: 2']), 'two types', 'REQUEST_MALFORMED');
    await refused(write(['Idempotency-Key: protocol-2', 'Content-Length: 2']), 'two keys', 'IDEMPOTENCY_KEY_INVALID');
  });

  it('a token counts only in its header, and only as Bearer', async () => {
    const stranger = (...headers: string[]): Buffer =>
      bytes({ bare: true, headers: ['Host: x', 'Connection: close', ...headers] });
    await refused(stranger(`Cookie: access_token=${token}`), 'cookie', 'TOKEN_MISSING');
    await refused(stranger('Authorization: Basic c2FtOnNhbQ=='), 'Basic', 'TOKEN_MISSING');
    await refused(stranger('Authorization: Bearer'), 'empty', 'TOKEN_MISSING');
    await refused(stranger(`Authorization: Bearer ${token}, Bearer x`), 'two in one', 'TOKEN_INVALID');
    await refused(
      bytes({ bare: true, target: `/api/v1/objects?access_token=${token}`, headers: ['Host: x', 'Connection: close'] }),
      'query',
      'TOKEN_MISSING',
    );
    await answered(stranger(`authorization: bearer ${token}`), 'lower case');
  });

  it('methods without an operation are refused', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'PUT', 'DELETE', 'QUERY'])
      await refused(bytes({ method }), method, 'METHOD_NOT_ALLOWED');
    for (const method of ['FOO', 'get', 'GET\t']) await refused(bytes({ method }), method, 'REQUEST_MALFORMED');
    await refused(bytes({ method: 'CONNECT', target: 'localhost:443' }), 'CONNECT', 'REQUEST_MALFORMED');
    await refused(bytes({ method: 'OPTIONS', target: '*' }), 'OPTIONS *', 'ROUTE_NOT_FOUND');
    const override = write(['X-HTTP-Method-Override: DELETE', 'Content-Length: 2']);
    await refused(override, 'method override', 'VALIDATION_FAILED');
  });

  it('versions 1.0 and 1.1 are accepted, others refused', async () => {
    await answered(bytes({ version: '1.0' }), 'HTTP/1.0');
    for (const version of ['2.0', '0.9', '9.9', 'x']) await refused(bytes({ version }), version, 'REQUEST_MALFORMED');
    await refused(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'preface of HTTP/2', 'REQUEST_MALFORMED');
    for (const protocol of ['h2c', 'websocket'])
      await answered(bytes({ headers: [`Upgrade: ${protocol}`] }), `Upgrade: ${protocol}`);
  });

  it('the absolute form of an address is accepted, other forms are not', async () => {
    await answered(bytes({ target: 'http://anywhere.example/api/v1/objects' }), 'absolute form');
    for (const target of [
      '/api/v1/objects#x',
      '//api/v1/objects',
      '/api/v1/objects/',
      '/API/v1/objects',
      '/api/v1//objects',
    ])
      await refused(bytes({ target }), target, ['ROUTE_NOT_FOUND', 'OBJECT_NOT_FOUND']);
    for (const target of ['/api/v1/data/../objects', '/api/v1/data/%2e%2e/objects', '/api/v1/data/Account%2f..%2f..'])
      await refused(bytes({ target }), target, ['OBJECT_NOT_FOUND', 'PARAMETER_INVALID']);
    for (const target of [
      '/api/v1/obj\0ects',
      '/api/v1/objects/\xff/describe',
      '/api/v1/objects/a b/describe',
      'objects',
    ])
      await refused(bytes({ target }), JSON.stringify(target), ['REQUEST_MALFORMED']);
  });

  it('lines and headers with another terminator are refused', async () => {
    for (const headers of [['X-A: a\rb'], ['X-A: a\0b'], ['X-A: b', ' folded'], ['Bad Name: x'], [': x'], ['X-A\n: x']])
      await refused(bytes({ headers }), JSON.stringify(headers), 'REQUEST_MALFORMED');
    await refused(Buffer.from('GET /api/v1/objects HTTP/1.1\nHost: x\n\n'), 'LF alone', 'REQUEST_MALFORMED');
  });

  it('too long addresses and headers are refused', async () => {
    await refused(bytes({ target: `/api/v1/objects?${'a'.repeat(50_000)}` }), 'long address', 'URI_TOO_LONG');
    await refused(bytes({ target: `/api/v1/objects?${'a'.repeat(80_000)}` }), 'longer', 'REQUEST_MALFORMED');
    await refused(bytes({ headers: [`X-A: ${'a'.repeat(70_000)}`] }), 'a long header', 'REQUEST_MALFORMED');
    const many = Array.from({ length: 3_000 }, (_, i) => `X-${i}: 1`);
    await refused(bytes({ headers: many }), 'many headers', 'REQUEST_MALFORMED');
  });

  it('conflicting lengths of a body are refused', async () => {
    const ends = [
      ['Content-Length: 5', 'Content-Length: 6'],
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', 'Content-Length: 5'],
      ['Content-Length: -5'],
      ['Content-Length: +2'],
      ['Content-Length: 2, 2'],
      ['Content-Length: 0x2'],
      ['Transfer-Encoding: gzip'],
      ['Transfer-Encoding: xchunked'],
      ['Transfer-Encoding: chunked, identity'],
      ['Transfer-Encoding:\x0bchunked'],
    ];
    for (const headers of ends) await refused(write(headers, '0\r\n\r\n'), headers.join(), 'REQUEST_MALFORMED');
    for (const chunks of [
      'zz\r\n{}\r\n0\r\n\r\n',
      'fffffffffffffffff\r\n{}',
      '-2\r\n{}\r\n0\r\n\r\n',
      `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    ])
      await refused(write(['Transfer-Encoding: chunked'], chunks), chunks.slice(0, 20), 'REQUEST_MALFORMED');
    await refused(write(['Content-Length: 99999999999']), 'an endless body', 'REQUEST_TOO_LARGE');
  });

  it('a body in an unknown transfer coding is not read as plain, and ends the connection', async () => {
    const codings = [
      ['Transfer-Encoding: gzip, chunked'],
      ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: deflate,chunked'],
      ['Transfer-Encoding: identity, chunked'],
      ['Transfer-Encoding: chunked, chunked'],
      ['Transfer-Encoding: xyz;a=b, chunked'],
    ];
    const chunks = '2\r\n{}\r\n0\r\n\r\n';
    const second = bytes({ bare: true, headers: ['Host: x', 'Connection: close'] });
    for (const target of ['/api/v1/data/Account', '/oauth2/token', '/', '/api/v1/versions', '/scim/v2/Users', '/mcp'])
      for (const headers of codings) {
        const head = { method: 'POST', target, bare: true, headers: ['Host: x', ...headers] };
        // The next request on the connection is never answered.
        const sent = Buffer.concat([bytes(head, chunks), second]);
        const answers = await sendBytes(platform.baseUrl, sent);
        assert.deepEqual(
          answers.map(({ status }) => status),
          [400],
          `${target} ${headers.join()}`,
        );
        assert.equal(answers[0]!.headers.get('connection'), 'close', `${target} ${headers.join()}`);
      }
    await refused(bytes({ method: 'POST', version: '1.0', headers: ['Transfer-Encoding: chunked'] }, chunks), '1.0', [
      'REQUEST_MALFORMED',
    ]);
    await refused(write(['Transfer-Encoding: CHUNKED'], chunks), 'capitals', 'VALIDATION_FAILED');
    await answered(bytes({ headers: ['TE: gzip, trailers'] }), 'codings of the answer are no matter of the body');
  });

  it('a request behind a body is answered as a request of its own, never as part of another', async () => {
    const first = write(['Content-Length: 2']).toString('latin1').replace('Connection: close\r\n', '');
    const second = bytes({ bare: true, target: '/api/v1/objects', headers: ['Host: x', 'Connection: close'] });
    const [one, two, ...rest] = await sendBytes(platform.baseUrl, first + second.toString('latin1'));
    assertRefused(one!, 'first', 'VALIDATION_FAILED');
    assertRefused(two!, 'second', 'TOKEN_MISSING');
    assert.equal(rest.length, 0);
    const trailer = 'Transfer-Encoding: chunked';
    await refused(write([trailer], '2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n'), 'trailer', 'VALIDATION_FAILED');
  });

  it('truncated, corrupt or doubled gzip and gzip bombs are refused', async () => {
    const zip = (body: Uint8Array, encoding = 'gzip'): Buffer =>
      write([`Content-Encoding: ${encoding}`, `Content-Length: ${body.length}`], body);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    assert.ok(bomb.length < 100_000);
    await refused(zip(bomb), 'bomb', 'REQUEST_TOO_LARGE');
    await refused(zip(gzipSync(bomb)), 'bomb in a bomb', 'REQUEST_MALFORMED');
    await refused(zip(gzipSync(Buffer.alloc(2_000, 'a')).subarray(0, 20)), 'cut', 'REQUEST_MALFORMED');
    await refused(zip(Buffer.from('{}')), 'no gzip', 'REQUEST_MALFORMED');
    for (const encoding of ['gzip, gzip', 'br', 'deflate', 'x'])
      await refused(zip(gzipSync('{}'), encoding), encoding, 'MEDIA_TYPE_UNSUPPORTED');
    await refused(zip(gzipSync('{}')), 'sound gzip of a bad record', 'VALIDATION_FAILED');
  });

  it('the only accepted content type is JSON in UTF-8', async () => {
    const types = [
      'text/plain',
      'application/xml',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
      '',
      '*/*',
      'application/json; charset=utf-16',
      'application/json,text/plain',
      'application/jsonp',
    ];
    for (const type of types) {
      const sent = bytes(
        {
          method: 'POST',
          target: '/api/v1/data/Account',
          headers: ['Idempotency-Key: protocol-1', `Content-Type: ${type}`, 'Content-Length: 2'],
        },
        '{}',
      );
      await refused(sent, type, 'MEDIA_TYPE_UNSUPPORTED');
    }
  });

  it('Accept, Range, Expect and conditions never change more than the form of the answer', async () => {
    for (const accept of ['application/xml', '', ';;;q=,*/*;q=-1', 'a'.repeat(5_000), 'application/problem+json;q=NaN'])
      await answered(bytes({ headers: [`Accept: ${accept}`] }), `Accept: ${accept}`);
    for (const range of ['bytes=0-1,5-9', 'bytes=99999999999999999999-', 'bytes=-1', 'lines=1', 'bytes=5-1'])
      await answered(bytes({ headers: [`Range: ${range}`] }), `Range: ${range}`);
    await answered(bytes({ headers: ['Expect: 100-continue'] }), 'Expect without a body');
    await refused(bytes({ headers: ['Expect: 200-ok'] }), 'Expect', 'REQUEST_MALFORMED');
    await answered(bytes({ headers: [`If-None-Match: ${'"x",'.repeat(5_000)}"y"`] }), 'If-None-Match');
    await answered(
      bytes({ headers: ['If-Modified-Since: never', 'If-Unmodified-Since: \xff', 'If-Range: x'] }),
      'dates',
    );
  });

  it('a body is refused for operations without one', async () => {
    const body = ['Content-Type: application/json', 'Content-Length: 2'];
    await refused(bytes({ headers: body }, '{}'), 'GET', 'REQUEST_MALFORMED');
    const gone = {
      method: 'DELETE',
      target: '/api/v1/data/Contact/01939f6e-0000-7000-8000-000000000001',
      headers: [body[0]!, 'Content-Length: 7', 'Idempotency-Key: protocol-1', 'If-Match: "1"'],
    };
    await refused(bytes(gone, '{"a":1}'), 'DELETE', 'REQUEST_MALFORMED');
  });

  it('no input becomes a header of the response', async () => {
    const evil = '%0d%0aSet-Cookie:%20x=1%0d%0a%0d%0a<script>';
    const targets = [
      `/api/v1/objects/${evil}/describe`,
      `/api/v1/data/Account?${evil}=1`,
      `/api/v1/data/Account?fields=${evil}`,
      `/api/v1/data/Account?cursor=${evil}`,
      `/${evil}`,
    ];
    const headers = [
      `X-Request-Id: ${evil}`,
      `Origin: http://x${evil}`,
      `traceparent: ${evil}`,
      `Accept-Language: ${evil}`,
    ];
    for (const target of targets)
      for (const answer of await sendBytes(platform.baseUrl, bytes({ target, headers }))) {
        assertRefused(answer, target);
        assert.equal(answer.headers.get('set-cookie'), null);
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
      }
  });

  it('headers that other systems trust have no effect', async () => {
    const mine = await api(platform.baseUrl, token).get('/identity');
    const headers = {
      'x-tenant-id': 'acme',
      'x-user-id': 'ada',
      'x-forwarded-user': 'ada',
      'x-original-url': '/api/v1/scopes',
      'x-rewrite-url': '/api/v1/scopes',
      forwarded: 'for=1.2.3.4;host=evil',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'gopher',
    };
    const answer = await api(platform.baseUrl, token).get('/identity', { headers });
    assert.deepEqual(answer.body, mine.body);
  });

  it('odd values of our own headers are refused or ignored, never fatal', async () => {
    const values = [
      '',
      ' ',
      '\xff\xfe',
      '"',
      "'; DROP TABLE x; --",
      'a'.repeat(10_000),
      '*',
      'W/"1"',
      '"1',
      '1',
      '"1", W/"2"',
      '00-0-0-0',
      '-1',
      '1e9',
      '{}',
    ];
    const names = [
      'If-Match',
      'If-None-Match',
      'Idempotency-Key',
      'X-Agent-Run-Id',
      'X-Duplicate-Confirmation',
      'X-Expected-Revision',
      'traceparent',
      'X-Request-Id',
      'Accept-Language',
      'Accept-Encoding',
      'Origin',
    ];
    const lines = names.flatMap((name) => values.map((value) => `${name}: ${value}`));
    for (const line of lines) {
      const patch = {
        method: 'PATCH',
        target: '/api/v1/data/Account/x',
        headers: ['Content-Type: application/json', 'Content-Length: 2', line],
      };
      const answers = await Promise.all([
        sendBytes(platform.baseUrl, bytes({ headers: [line] })),
        sendBytes(platform.baseUrl, bytes(patch, '{}')),
      ]);
      for (const answer of answers.flat()) assertSound(answer, line);
    }
  });

  it('the rest of a refused body is read slowly, and at most as much as the largest body', async function () {
    this.timeout(30_000);
    const { hostname, port } = new URL(platform.baseUrl);
    const socket = connect({ host: hostname, port: Number(port) });
    const headers = ['Host: localhost', 'Content-Length: 10000000000'];
    const head = bytes({ method: 'POST', target: '/api/v1/nothing', headers, bare: true });
    const started = performance.now();
    let [sent, received] = [0, ''];
    socket.on('data', (chunk) => (received += chunk));
    socket.on('error', () => {}); // the gateway closes while we write
    const part = Buffer.alloc(64 * 1024);
    const write = (): void => {
      do sent += part.length;
      while (socket.write(part));
    };
    socket.on('drain', write);
    socket.write(head);
    write();
    await new Promise((resolve) => socket.once('close', resolve));
    const seconds = (performance.now() - started) / 1_000;
    assert.match(received, /^HTTP\/1.1 404 /);
    // In addition, both sides' sockets buffer data.
    assert.ok(sent < 48 * 1024 * 1024, `${sent} bytes`);
    assert.ok(seconds > 0.8, `${sent} bytes in ${seconds} s`);
  });

  it('a connection that pipelines too many requests is closed, without delaying others', async () => {
    const one = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const few = await sendBytes(platform.baseUrl, one.repeat(31) + bytes({}).toString('latin1'));
    assert.deepEqual([...new Set(few.map(({ status }) => status))], [200]);
    assert.equal(few.length, 32);
    const { hostname, port } = new URL(platform.baseUrl);
    const before = process.cpuUsage();
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => {}); // reset while we write
    socket.write(one.repeat(30_000));
    await new Promise((resolve) => socket.resume().once('close', resolve));
    const { user } = process.cpuUsage(before);
    // The platform runs in this process: 30,000 responses took it more than a second.
    assert.ok(user < 800_000, `${user} µs`);
  });

  it('the connection of a refused body serves the next request', async () => {
    const body = Buffer.alloc(600_000, ' ');
    const about = { method: 'POST', target: '/api/v1/nothing', bare: true };
    const first = bytes({ ...about, headers: ['Host: localhost', `Content-Length: ${body.length}`] }, body);
    const answers = await sendBytes(platform.baseUrl, Buffer.concat([first, bytes({})]));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 200],
    );
  });
});
