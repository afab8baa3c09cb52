import assert from 'node:assert/strict';
import { findNoneAgainstItsRule, guardedObject, writeThroughDeployments } from '../../support/changing-rules.ts';
import { api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** RULES_VERSIONS=50 changes the rule more often. */
const VERSIONS = Number(process.env['RULES_VERSIONS'] ?? 15);

describe('API: writing during changes of rules', () => {
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  it('no record breaks the rule that was current when it was committed', async function () {
    this.timeout(300_000);
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    await guardedObject(ada);
    const written = await writeThroughDeployments(ada, [ada], { versions: VERSIONS, writers: 4 });
    assert.deepEqual(written.surprises, []);
    assert.ok(written.committed > 200 && written.refused > 50, JSON.stringify(written));
    const { tenant } = (await ada.get('/identity')).body;
    assert.equal(await findNoneAgainstItsRule(platform.database.url, tenant.id), written.committed);
    this.test!.title += ` (${written.committed} writes, the longest took ${Math.round(written.longestMs)} ms)`;
  });
});
