import assert from 'node:assert/strict';
import { type Answer, type Stage, startStage } from './stage.ts';

const ID = '0193d3b1-2c40-7e0a-9b7e-5f1d7a2c8e44';

describe('dashboards page', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage.stop());

  /** One slash in front more than the path has: not below the API. */
  const open = (path: string, method = 'GET'): Promise<Answer> => stage.send(method, `/${path}`, { token: null });
  const assetsOf = ({ text }: Answer): string[] => [
    ...new Set([...text.matchAll(/(?:href|src)="(\/[a-z]+\/assets\/[^"]+)"/g)].map(([, path]) => path!)),
  ];

  it('is one public document, for the list and each dashboard', async () => {
    const list = await open('/dashboards');
    const one = await open(`/dashboards/${ID}`);
    assert.deepEqual([list.status, one.status], [200, 200]);
    assert.equal(list.text, one.text);
    assert.match(String(list.headers['content-type']), /^text\/html/);
    assert.equal(list.headers['cache-control'], 'no-store');
    assert.equal((await open('/dashboards', 'HEAD')).text, '');
  });

  it('allows only its own files: no inline code, eval, frames, or markup from text', async () => {
    const { headers, text } = await open('/dashboards');
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((directive) => [directive.split(' ')[0]!, directive.split(' ').slice(1).join(' ')]),
    );
    assert.deepEqual(Object.fromEntries(policy), {
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self'",
      'connect-src': "'self'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
      'require-trusted-types-for': "'script'",
      'trusted-types': "'none'",
    });
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style| style=| on[a-z]+=/, 'nothing inline');
  });

  it('loads files of this version, cached by browsers', async () => {
    const assets = assetsOf(await open('/dashboards'));
    assert.ok(assets.some((path) => path.endsWith('/chart-library.js')));
    assert.ok(assets.length > 10);
    for (const path of assets) {
      const { status, headers, body } = await open(path);
      assert.equal(status, 200, path);
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable', path);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(String(headers['content-type']), path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
      assert.ok(body.length > 100, path);
      const again = await stage.send('GET', `/${path}`, { token: null, headers: { 'if-none-match': headers.etag! } });
      assert.deepEqual([again.status, again.text], [304, ''], path);
    }
  });

  for (const page of ['/dashboards', '/admin', '/app', '/approvals', '/events', '/import', '/notifications'])
    it(`loads every module that another one of ${page} imports`, async () => {
      const assets = assetsOf(await open(page));
      const imported = new Set<string>();
      for (const path of assets.filter((one) => one.endsWith('.js') && !one.endsWith('chart-library.js')))
        for (const [, specifier = ''] of (await open(path)).text.matchAll(/(?: from |import\()'(\.[^']+\.js)'/g)) {
          const { pathname } = new URL(specifier, `http://host/${path}`);
          assert.ok(assets.includes(pathname.slice(1)), `${path} imports ${specifier}`);
          imported.add(pathname);
        }
      assert.ok(imported.size > 5);
    });

  it('serves the paths of another version with current files, uncached', async () => {
    const { status, headers } = await open('/dashboards/assets/0123456789abcdef/dashboards/browser/main.js');
    assert.deepEqual([status, headers['cache-control']], [200, 'no-store']);
  });

  it('is at no other path, and accepts no input', async () => {
    const [asset = ''] = assetsOf(await open('/dashboards'));
    const folder = asset.slice(0, asset.lastIndexOf('/'));
    for (const path of [
      '/dashboards/',
      '/dashboards/x',
      '/dashboardsx',
      `/dashboards/${ID}/`,
      `/dashboards/${ID}/widgets`,
      `${folder}/`,
      `${folder}/page.ts`,
      `${folder}/types.d.ts`,
      `${folder}/../page.ts`,
      `${folder}/%2e%2e/page.ts`,
      `${folder}/dashboards/browser/types.d.ts`,
      `${folder}/dashboards/browser/../page.ts`,
      `${folder}/shared/../page.ts`,
      '/dashboards/assets/main.js',
    ])
      assert.equal((await open(path)).status, 404, path);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await open('/dashboards', method);
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], method);
    }
  });
});
