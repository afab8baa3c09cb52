/** Two processes of data beside each other, neither of which may hold on to a rule that a deployment has replaced. */
import assert from 'node:assert/strict';
import { findNoneAgainstItsRule, guardedObject, writeThroughDeployments } from '../support/changing-rules.ts';
import type { ServiceProcess } from '../support/processes.ts';
import { type Stage, startStage } from './stage.ts';

describe('a cluster with two data processes', function () {
  this.timeout(300_000);
  let stage: Stage;
  let second: ServiceProcess;
  before(async function () {
    this.timeout(330_000);
    stage = await startStage();
    second = await stage.startCopy('data');
  });
  after(async () => {
    await second?.stop();
    await stage?.stop();
  });

  it('never grants access by a removed rule', async function () {
    const ada = await stage.as('ada');
    await guardedObject(ada);
    const written = await writeThroughDeployments(ada, [ada], { versions: 15, writers: 6 });
    assert.deepEqual(written.surprises, []);
    assert.ok(written.committed > 100 && written.refused > 20, JSON.stringify(written));
    assert.equal(await findNoneAgainstItsRule(stage.database.url, await stage.tenantId()), written.committed);
    assert.equal(second.crash(), null);
    this.test!.title += ` (${written.committed} writes, the longest took ${Math.round(written.longestMs)} ms)`;
  });
});
