/** Responses outside the API to browsers, programs, crawlers and caches. */
import assert from 'node:assert/strict';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { type Answer, type Stage, startStage } from './stage.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const CONTACT = 'mailto:security@erp.example';

describe('Pages of the gateway', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage({ SECURITY_CONTACT: CONTACT });
  });
  after(() => stage.stop());

  /** One slash in front more than the path has: not below the API. */
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
    stage.send(method, `/${path}`, { token: null, headers });
  const browse = (path: string, method = 'GET'): Promise<Answer> => get(path, { accept: BROWSER }, method);

  it('the home page is HTML for browsers and JSON for programs, with Vary', async () => {
    const page = await browse('/');
    assert.match(String(page.headers['content-type']), /^text\/html/);
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5', '']) {
      const { headers, json } = await get('/', { accept });
      assert.equal(headers['content-type'], 'application/json', accept);
      assert.equal(json.links.api, `${json.links.health.replace('/healthz', '')}/api/v1`);
      assert.notEqual(headers.etag, page.headers.etag);
    }
    assert.match(String(page.headers.vary), /\bAccept\b/);
  });

  it('public pages are cacheable and revalidated by ETag', async () => {
    const kept = ['/', '/favicon.svg', '/favicon.ico', '/robots.txt', '/.well-known/security.txt'];
    for (const path of kept) {
      const first = await browse(path);
      assert.equal(first.status, 200, path);
      assert.match(String(first.headers['cache-control']), /^public, max-age=\d+$/, path);
      const etag = String(first.headers.etag);
      assert.match(etag, /^"[\w-]{22}"$/, path);
      const again = await get(path, { accept: BROWSER, 'if-none-match': etag });
      assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', etag], path);
      assert.equal((await get(path, { accept: BROWSER, 'if-none-match': '"another"' })).status, 200, path);
      const head = await browse(path, 'HEAD');
      assert.deepEqual([head.status, head.text], [200, ''], path);
      assert.equal(head.headers['content-length'], first.headers['content-length'], path);
    }
  });

  it('allow their own stylesheet and icon, and nothing else', async () => {
    for (const path of ['/', '/nothing']) {
      const { headers } = await browse(path);
      assert.match(
        String(headers['content-security-policy']),
        /^default-src 'none'; style-src 'sha256-[\w+/]+=*'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'$/,
      );
      assert.equal(headers['x-frame-options'], 'DENY');
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  it('the icon is served at its linked and its well-known path', async () => {
    for (const path of ['/favicon.svg', '/favicon.ico']) {
      const { headers, text } = await get(path);
      assert.equal(headers['content-type'], 'image/svg+xml');
      assert.match(text, /^<svg /);
    }
  });

  it('robots.txt excludes everything but the public pages', async () => {
    const { headers, text } = await get('/robots.txt');
    assert.match(String(headers['content-type']), /^text\/plain/);
    const disallowed = text.split('\n').flatMap((line) => (line.startsWith('Disallow: ') ? [line.slice(10)] : []));
    const shut = (path: string): boolean => disallowed.some((start) => path.startsWith(start));
    for (const path of ['/api/v1/data/Account', '/oauth2/authorize', '/account', '/dashboards/1', '/readyz'])
      assert.equal(shut(path), true, path);
    for (const path of ['/', '/versions/latest/docs/', '/llms.txt', '/.well-known/security.txt'])
      assert.equal(shut(path), false, path);
  });

  it('security.txt names the contact, for half a year to come', async () => {
    const { headers, text } = await get('/.well-known/security.txt');
    assert.match(String(headers['content-type']), /^text\/plain; charset=utf-8$/);
    const fields = new Map(text.split('\n').map((line) => line.split(': ') as [string, string]));
    assert.equal(fields.get('Contact'), CONTACT);
    assert.ok(fields.get('Canonical')?.endsWith('/.well-known/security.txt'));
    const days = (Date.parse(fields.get('Expires') ?? '') - Date.now()) / 86_400_000;
    assert.ok(days > 170 && days <= 180, `${days} days`);
  });

  it('security.txt is 404 without a configured contact', async () => {
    const other = await startStage();
    try {
      const { status } = await other.send('GET', '//.well-known/security.txt', { token: null });
      assert.equal(status, 404);
    } finally {
      await other.stop();
    }
  });

  it('are read, and take nothing', async () => {
    for (const path of ['/', '/healthz', '/robots.txt', '/favicon.ico'])
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const { status, headers, json } = await get(path, {}, method);
        assert.deepEqual(
          [status, headers.allow, json.code],
          [405, 'GET, HEAD', 'METHOD_NOT_ALLOWED'],
          `${method} ${path}`,
        );
      }
    const page = await browse('/', 'POST');
    assert.equal(page.status, 405);
    assert.match(page.text, /<h1>Method not allowed<\/h1>/);
  });

  it('are at no other address', async () => {
    for (const path of [
      '/signin',
      '/auth',
      '/index.html',
      '/Robots.txt',
      '/robots.txt/',
      '/favicon.png',
      '/%2e',
      '/HEALTHZ',
    ])
      assert.equal((await get(path)).status, 404, path);
  });

  describe('errors in a browser', () => {
    it('state the problem, the remedy, the request id, and a link', async () => {
      const { status, headers, text } = await browse('/nothing/here');
      assert.equal(status, 404);
      assert.match(text, /<title>Page not found · ERP platform<\/title>/);
      assert.match(text, /<h1>Page not found<\/h1>/);
      assert.ok(text.includes(String(headers['x-request-id'])));
      assert.match(text, /<a href="\/">Start page<\/a>/);
      assert.doesNotMatch(text, /Try again/, 'it would not help');
    });

    it('never echo the request', async () => {
      const { text } = await browse('/<script>alert(1)</script>"\'&amp;?x=<b>marker</b>');
      assert.doesNotMatch(text, /alert|marker/);
    });

    it('503 asks to try again, with the time to wait in the header as well', async () => {
      stage.authAnswer = () => {
        throw new PlatformError('SERVICE_UNAVAILABLE', 'auth cannot be reached.', { retryAfterSeconds: 1 });
      };
      const { status, headers, text } = await browse('/oauth2/authorize');
      assert.equal(status, 503);
      assert.equal(headers['retry-after'], '1');
      assert.match(text, /Try again in one second\.[\s\S]*<a href="">Try again<\/a>/);
    });

    it('429 says how long to wait', async () => {
      const limited = await startStage({ RATE_ANONYMOUS_REQUESTS: '3' });
      try {
        let answer: Answer;
        let left = 8;
        do answer = await limited.send('GET', '//', { token: null, headers: { accept: BROWSER } });
        while (answer.status === 200 && left-- > 0);
        assert.equal(answer.status, 429);
        assert.match(answer.text, /<h1>Too many requests<\/h1>[\s\S]*Try again in \d+ seconds/);
        assert.ok(Number(answer.headers['retry-after']) > 0);
      } finally {
        await limited.stop();
      }
    });
  });
});
