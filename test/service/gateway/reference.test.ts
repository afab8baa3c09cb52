/** The interactive API reference: a page that loads nothing from elsewhere. Browsers look at it in test/browser. */
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { type Stage, startStage } from './stage.ts';

describe('The API reference', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage?.stop());

  const get = (path: string, headers: Record<string, string> = {}) =>
    stage.send('GET', `//${path.slice(1)}`, { token: null, headers });

  it('loads files of this gateway, compressed and cacheable', async () => {
    const page = await get('/api-reference');
    assert.equal(page.status, 200);
    const addresses = [
      ...page.text.matchAll(/<(?:link rel="stylesheet" href|script defer src|script type="module" src)="([^"]+)"/g),
    ].map((match) => match[1]!);
    assert.equal(addresses.length, 4);
    for (const address of addresses) {
      const asset = await get(address, { 'accept-encoding': 'gzip' });
      assert.equal(asset.status, 200, address);
      assert.match(String(asset.headers['cache-control']), /immutable/);
      assert.match(String(asset.headers['content-type']), /^text\/(css|javascript); charset=utf-8$/);
      if (asset.headers['content-encoding'] === 'gzip') assert.ok(gunzipSync(asset.body).length > asset.body.length);
      assert.equal((await get(address.replace(/[0-9a-f]{16}/, '0'.repeat(16)))).headers['cache-control'], 'no-store');
    }
    assert.doesNotMatch(page.text, /(?:src|href)="(?:https?:)?\/\//);
  });

  it('allows only its own scripts and styles', async () => {
    const { headers, text } = await get('/api-reference');
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.doesNotMatch(text, /<style|<script(?! (?:defer|type="module") src=)|\sstyle=/);
  });

  it('is at its path only', async () => {
    for (const path of ['/api-reference/', '/api-reference/assets/x/reference.js', '/api-reference/other'])
      assert.equal((await get(path)).status, 404, path);
  });

  it('omits sign-in when the operator disables it', async () => {
    assert.match((await get('/api-reference')).text, / data-client="erp-api-reference"[\s\S]* id="enter"/);
    const other = await startStage({ SEED_DEMO: 'false' });
    try {
      const { text } = await other.send('GET', '//api-reference', { token: null });
      assert.doesNotMatch(text, /data-client|id="trying"|id="enter"/);
    } finally {
      await other.stop();
    }
  });
});
