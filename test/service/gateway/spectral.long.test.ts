import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { asyncapi } from '../../../scripts/documents/asyncapi.ts';
import { openapi } from '../../../services/gateway/public/openapi.ts';
import { root } from '../../support/sources.ts';
import { tool } from '../../support/tools.ts';

/** A document of a version names neither servers nor a contact; 3.0 is what most programs read. */
const OF_EVENTS = `extends: ["spectral:asyncapi"]
rules: { asyncapi-servers: off, asyncapi-info-contact: off, asyncapi-latest-version: off }
`;

for (const [name, description, rules] of [
  ['API', () => openapi(OPERATIONS, 'https://erp.example'), () => readFile(join(root, '.spectral.yaml'), 'utf8')],
  ['events', asyncapi, async () => OF_EVENTS],
] as const)
  describe(`The description of the ${name}`, () => {
    it('is clean under the rules of Spectral', async function () {
      this.timeout(60_000);
      const folder = await mkdtemp(join(tmpdir(), 'erp-description-'));
      const [document, ruleset] = [join(folder, 'description.json'), join(folder, 'rules.yaml')];
      try {
        await Promise.all([writeFile(document, JSON.stringify(description())), writeFile(ruleset, await rules())]);
        const args = ['lint', document, '--ruleset', ruleset, '--fail-severity', 'hint'];
        await promisify(execFile)(tool('.bin', 'spectral'), args).catch((error: { stdout: string }) =>
          assert.fail(error.stdout),
        );
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  });
