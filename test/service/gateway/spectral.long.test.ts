import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { openapi } from '../../../services/gateway/public/openapi.ts';
import { tool } from '../../support/tools.ts';

describe('The API description', () => {
  it('is clean under the rules of Spectral', async function () {
    this.timeout(60_000);
    const folder = await mkdtemp(join(tmpdir(), 'erp-openapi-'));
    try {
      await writeFile(join(folder, 'openapi.json'), JSON.stringify(openapi(OPERATIONS, 'https://erp.example')));
      const ruleset = join(import.meta.dirname, '../../../.spectral.yaml');
      const args = ['lint', join(folder, 'openapi.json'), '--ruleset', ruleset, '--fail-severity', 'hint'];
      await promisify(execFile)(tool('.bin', 'spectral'), args).catch((error: { stdout: string }) =>
        assert.fail(error.stdout),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
