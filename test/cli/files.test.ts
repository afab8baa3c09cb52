/** `erp files`: storing and reading files as users and scripts do. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Api, api, tokenFor } from '../support/client.ts';
import { erpOf, keptErpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { temporaryFolder } from '../support/temporary.ts';

describe('erp files', () => {
  let platform: TestPlatform;
  let sam: Api;
  let env: Record<string, string>;
  let erp: ReturnType<typeof keptErpOf>;
  const folder = temporaryFolder('files');
  const path = (name: string): string => join(folder, name);

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'sam@demo.example');
    sam = api(platform.baseUrl, token);
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
    erp = keptErpOf(env);
  });
  after(() => platform.stop());

  const done = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await erp(args);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };

  it('stores a file beside a record, lists, reads and detaches it', async () => {
    await writeFile(path('offer.txt'), 'Offer for Weaver Street Press\n');
    const account = (await sam.post('/data/Account', { name: 'Weaver Street Press', city: 'Leeds' })).body.id;
    const id = await done('files', 'put', path('offer.txt'), '--record', `Account/${account}`);
    const listed = await done('files', 'list', '--record', `Account/${account}`);
    assert.equal(listed, `${id}\toffer.txt\ttext/plain\t30\tready`);
    assert.equal(await done('files', 'get', id, '--output', '-'), 'Offer for Weaver Street Press');
    await done('files', 'detach', id, `Account/${account}`);
    assert.equal(await done('files', 'list', '--record', `Account/${account}`), '');
    await done('files', 'delete', id);
    assert.equal((await erp(['files', 'show', id])).code, 1);
  });

  it('goes on with an upload and a download that were interrupted', async () => {
    const bytes = randomBytes(20_000_000);
    await writeFile(path('large.bin'), bytes);
    const user = new AbortController();
    const stopped = await erpOf(env)(['files', 'put', path('large.bin'), '--verbose'], {
      interrupt: user.signal,
      onStderr: (text) => /^PATCH \S+ 204/m.test(text) && user.abort(),
    });
    assert.equal(stopped.code, 130, stopped.stderr);
    assert.match(stopped.stderr, /The same command goes on with the upload\./);
    const again = await erp(['files', 'put', path('large.bin'), '--verbose']);
    assert.equal(again.code, 0, again.stderr);
    assert.doesNotMatch(again.stderr, /^POST \S+\/uploads 201/m);
    const id = again.stdout.trim();
    await writeFile(path('copy.bin.part'), bytes.subarray(0, 5_000_000));
    await done('files', 'get', id, '--output', path('copy.bin'));
    assert.ok(bytes.equals(await readFile(path('copy.bin'))));
    assert.ok(!existsSync(path('copy.bin.part')));
  });

  it('says what is wrong before anything is sent', async () => {
    const missing = await erp(['files', 'put', path('missing.pdf')]);
    assert.deepEqual([missing.code, /no such file: /.test(missing.stderr)], [2, true]);
    const record = await erp(['files', 'list', '--record', 'Account']);
    assert.deepEqual([record.code, record.stderr.split('\n')[0]], [2, 'Error: Account is no record.']);
  });
});
