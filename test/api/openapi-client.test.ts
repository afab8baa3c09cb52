/** A client that somebody else's generator makes out of /openapi.json compiles, and lists records. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, describe, it } from 'mocha';
import { tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const bin = (name: string): string => join(import.meta.dirname, '..', '..', 'node_modules', '.bin', name);
const folder = join(import.meta.dirname, 'generated');

describe('a client generated from /openapi.json', () => {
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  it('compiles and lists records', async function () {
    this.timeout(60_000);
    const description = await (await fetch(`${platform.baseUrl}/api/v1/openapi.json`)).text();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'openapi.json'), description);
    execFileSync(bin('oazapfts'), [join(folder, 'openapi.json'), join(folder, 'client.ts')]);
    assert.match(readFileSync(join(folder, 'client.ts'), 'utf8'), /files: \{\s*\[key: string\]: string;?\s*\}/);
    execFileSync(
      bin('tsc'),
      [
        '--noEmit',
        '--ignoreConfig',
        '--strict',
        '--target',
        'esnext',
        '--module',
        'nodenext',
        '--skipLibCheck',
        join(folder, 'client.ts'),
      ],
      { stdio: 'pipe' },
    );
    const client = await import(pathToFileURL(join(folder, 'client.ts')).href);
    client.defaults.headers = { authorization: `Bearer ${await tokenFor(platform.baseUrl, 'sam')}` };
    client.defaults.baseUrl = `${platform.baseUrl}/api/v1`;
    const answer = await client.dataRecordsList('Account', { take: 3 });
    assert.equal(answer.status, 200);
    assert.equal(answer.data.records.length, 3);
  });
});
