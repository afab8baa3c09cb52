/** `erp` before it contacts a platform: its version, and refused input. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { erpOf, PROGRAM, userEnvironment } from '../support/erp.ts';

/** Makes a process report Node 20: its version, and no `enableCompileCache`. */
const NODE_20 = `
import { registerHooks } from 'node:module';
const versions = { ...process.versions, node: '20.20.2' };
Object.defineProperties(process, { version: { value: 'v20.20.2' }, versions: { value: versions } });
const shortCircuit = true;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:module' ? { url: 'data:text/javascript,export{}', shortCircuit } : next(specifier, context),
});
`;

describe('erp, the program', () => {
  const env = userEnvironment();
  const erp = erpOf(env);

  it('reports the required Node on one that is too old', async () => {
    const preload = join(env['HOME'] ?? '', 'node-20.mjs');
    await writeFile(preload, NODE_20);
    const ended = promisify(execFile)(process.execPath, ['--import', preload, PROGRAM, '--help'], { env });
    await assert.rejects(ended, { code: 1, stderr: 'erp needs Node 24 or newer; this is v20.20.2.\n' });
  });

  it('prints the version of its package', async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'));
    assert.deepEqual(await erp(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('refuses a key that the platform would refuse, with the rule, before it reads a token or sends anything', async () => {
    for (const key of ['short', 'no spaces', 'x'.repeat(201)]) {
      const { code, stderr } = await erp(['data', 'update', 'Account', 'id', 'name=x', '--idempotency-key', key]);
      assert.equal(code, 2, key);
      assert.match(stderr, /8 to 200 letters, digits, periods, hyphens, underscores or colons/);
    }
  });

  it('refuses an address of the API as base URL, and names the part to omit', async () => {
    const { code, stderr } = await erp(['whoami', '--base-url', 'http://127.0.0.1:3000/erp/api/v1/']);
    assert.equal(code, 2);
    assert.match(stderr, /Leave out \/api\/v1: http:\/\/127\.0\.0\.1:3000\/erp\n/);
  });
});
