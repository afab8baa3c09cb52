/** The versioned documents as served publicly: the bytes of the archive at both addresses, with caching headers. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { CATALOGUE } from '../../../lib/errors/catalogue.ts';
import { type Stage, startStage } from './stage.ts';

const ADDRESSES = ['/versions/1.0.0/docs', '/api/v1/versions/1.0.0/docs'];

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

describe('Versioned documents', function () {
  this.timeout(60_000);
  let stage: Stage;
  before(async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '100000' });
  });
  after(() => stage?.stop());

  /** The path as it is, which fetch() would make canonical; the body as it was sent. */
  const get = (
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
    { baseUrl } = stage,
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(baseUrl);
      const sent = request({ hostname, port, path, method, headers, agent: false }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) }),
        );
      });
      sent.on('error', reject).end();
    });

  async function checksums(): Promise<Map<string, string>> {
    const { body } = await get(`${ADDRESSES[0]}/checksums.txt`);
    const lines = body.toString().trimEnd().split('\n');
    return new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]));
  }

  for (const address of ADDRESSES)
    it(`are those of checksums.txt byte for byte, compressed or not, at ${address}`, async () => {
      const wrong: string[] = [];
      for (const [name, checksum] of await checksums()) {
        const plain = await get(`${address}/${name}`);
        const packed = await get(`${address}/${name}`, { 'Accept-Encoding': 'gzip' });
        const unpacked = packed.headers['content-encoding'] === 'gzip' ? gunzipSync(packed.body) : packed.body;
        const found = [plain.body, unpacked].map((body) => hash('sha256', body));
        if (plain.headers['content-encoding'] || found.some((one) => one !== checksum)) wrong.push(name);
      }
      assert.deepEqual(wrong, []);
    });

  it('begin at the folder, which needs its slash', async () => {
    const folder = await get(`${ADDRESSES[1]}`);
    assert.equal(folder.status, 302);
    assert.equal(folder.headers['location'], `${ADDRESSES[1]}/`);
    const start = await get(`${ADDRESSES[1]}/`);
    assert.equal(start.headers['content-type'], 'text/html; charset=utf-8');
    assert.deepEqual(start.body, (await get(`${ADDRESSES[0]}/index.html`)).body);
  });

  it('have caching headers, and none that vary by caller', async () => {
    const { headers } = await get(`${ADDRESSES[0]}/style.css`, { Origin: 'https://elsewhere.example' });
    assert.equal(headers['etag'], `"${(await checksums()).get('style.css')}"`);
    assert.equal(headers['cache-control'], 'no-cache', 'a draft is asked for again');
    assert.equal(headers['vary'], 'Accept-Encoding');
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.equal(headers['x-content-type-options'], 'nosniff');
  });

  it('answer 304 to a matching ETag, and HEAD without a body', async () => {
    const address = `${ADDRESSES[0]}/guides/first-request.html`;
    const head = await get(address, {}, 'HEAD');
    const whole = await get(address);
    assert.deepEqual([head.status, head.body.length], [200, 0]);
    assert.equal(head.headers['content-length'], String(whole.body.length));
    const again = await get(address, { 'If-None-Match': String(head.headers['etag']) });
    assert.deepEqual([again.status, again.body.length], [304, 0]);
    assert.equal(again.headers['etag'], head.headers['etag']);
    assert.equal((await get(address, { 'If-None-Match': '"another"' })).status, 200);
  });

  it('are found as latest, for a while', async () => {
    for (const prefix of ['', '/api/v1']) {
      const { status, headers } = await get(`${prefix}/versions/latest/docs/reference/errors.html`);
      assert.equal(status, 302);
      assert.equal(headers['location'], `${prefix}/versions/1.0.0/docs/reference/errors.html`);
      assert.equal(headers['cache-control'], 'public, max-age=300');
    }
    assert.equal((await get('/versions/latest/docs/')).headers['location'], '/versions/1.0.0/docs/');
    assert.equal((await get('/versions/latest/docs')).headers['location'], '/versions/1.0.0/docs/');
  });

  it('lead from the type of an error body to the page about its code, for people and programs', async () => {
    const { body } = await get('/api/v1/nothing');
    const { type, code } = JSON.parse(body.toString());
    const path = new URL(type).pathname;
    const page = await get(path, { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(page.headers['vary'], 'Accept, Accept-Encoding');
    assert.match(page.body.toString(), new RegExp(`<h1 [^>]*>${code}</h1>`));
    const markdown = await get(path, { Accept: 'text/markdown' });
    assert.equal(markdown.headers['content-type'], 'text/markdown; charset=utf-8');
    assert.match(markdown.body.toString(), new RegExp(`^# ${code}\n`));
    assert.notEqual(markdown.headers['etag'], page.headers['etag']);
    for (const code of Object.keys(CATALOGUE))
      assert.equal((await get(`${ADDRESSES[1]}/errors/${code}`, {}, 'HEAD')).status, 200, code);
  });

  it('keep scripts and styles of others off their pages', async () => {
    const { headers } = await get(`${ADDRESSES[0]}/index.html`);
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /default-src 'none'.*script-src 'self'.*style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe/);
  });

  it('are 404 where there are none, and a browser gets a page about it', async () => {
    const cases: [string, string][] = [
      ['/versions/0.9.0/docs/', 'DOCS_VERSION_NOT_FOUND'],
      ['/versions/constructor/docs/index.html', 'DOCS_VERSION_NOT_FOUND'],
      ['/versions/', 'ROUTE_NOT_FOUND'],
      ['/versions/1.0.0/', 'ROUTE_NOT_FOUND'],
      ['/versions/1.0.0/docs/guides', 'ROUTE_NOT_FOUND'],
      ['/versions/1.0.0/docs/constructor', 'ROUTE_NOT_FOUND'],
      ['/versions/1.0.0/docs/../../versions.json', 'ROUTE_NOT_FOUND'],
      ['/versions/1.0.0/docs/..%2f..%2fversions.json', 'ROUTE_NOT_FOUND'],
      ['/versions/latest/docs/%0d%0aX-Injected:%20yes', 'ROUTE_NOT_FOUND'],
      ['/versions/../docs/index.html', 'DOCS_VERSION_NOT_FOUND'],
    ];
    for (const prefix of ['', '/api/v1'])
      for (const [path, code] of cases) {
        const answer = await get(`${prefix}${path}`);
        assert.equal(answer.status, 404, path);
        assert.equal(JSON.parse(answer.body.toString()).code, code, path);
        const page = await get(`${prefix}${path}`, { Accept: 'text/html' });
        assert.equal(page.status, 404);
        assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
        const leadsOn = page.body.toString().includes('<a href="/versions/latest/docs/">Newest documents</a>');
        assert.equal(leadsOn, code === 'DOCS_VERSION_NOT_FOUND', path);
      }
  });

  it('can only be read', async () => {
    const { status, headers } = await get(`${ADDRESSES[0]}/index.html`, {}, 'DELETE');
    assert.equal(status, 405);
    assert.equal(headers['allow'], 'GET, HEAD');
  });

  it('cost the address a unit', async () => {
    // A unit comes back in 10 s.
    const other = await startStage({ RATE_ANONYMOUS_REQUESTS: '6' });
    try {
      const read = (address: string): Promise<Answer> => get(`${address}/style.css`, {}, 'GET', other);
      const [first, second] = [await read(ADDRESSES[0]!), await read(ADDRESSES[1]!)];
      const left = ({ headers }: Answer): number => Number(headers['x-ratelimit-remaining']);
      assert.equal(left(second), left(first) - 1);
      assert.match(String(first.headers['ratelimit-policy']), /documents/);
    } finally {
      await other.stop();
    }
  });
});
