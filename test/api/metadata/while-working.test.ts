import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../../mixins/database/database.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: deploying while users work', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  it('no request fails, and no write is lost', async function () {
    this.timeout(60_000);
    const database = new Database(platform.database.url, { size: 1, applicationName: 'while working test' });
    const deadlocks = async (): Promise<number> => {
      const statement = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()';
      return (await database.query<{ deadlocks: number }>(statement)).rows[0]!.deadlocks;
    };
    const deadlocksBefore = await deadlocks();
    let working = true;
    const failures: Answer[] = [];
    const created: string[] = [];
    const writer = async (n: number): Promise<void> => {
      for (let i = 0; working; i++) {
        const answer = await sam.post('/data/Account', { name: `Busy ${n}.${i}` });
        if (answer.status === 201) created.push(answer.body.id);
        else failures.push(answer);
        const page = await sam.get('/data/Account?take=20');
        if (page.status !== 200) failures.push(page);
        if (answer.status === 201 && i % 3 === 0) {
          const changed = await sam.patch(
            `/data/Account/${answer.body.id}`,
            { name: `Busy ${n}.${i} again` },
            { etag: answer.headers.get('etag')! },
          );
          if (changed.status !== 200) failures.push(changed);
        }
      }
    };
    const writers = [0, 1, 2, 3].map(writer);
    for (let i = 0; i < 5; i++) {
      const files = fieldFile('Account', `Extra${i}__c`, 'fieldType: text\nunique: true');
      const { body } = await ada.post('/metadata/deploy', { files, package: wholePackage(files) });
      let status = 'QUEUED';
      while (!['SUCCEEDED', 'FAILED'].includes(status)) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        const { body: deployment } = await ada.get(`/metadata/deployments/${body.deploymentId}`);
        status = deployment.status;
        if (status === 'FAILED') assert.fail(JSON.stringify(deployment.error));
      }
    }
    working = false;
    await Promise.all(writers);
    assert.deepEqual(
      failures.map((answer) => answer.text),
      [],
    );
    assert.ok(created.length > 20);
    // A connection reports its statistics when it is idle, a second later at most.
    await pause(1_500);
    const deadlocksAfter = await deadlocks();
    await database.close();
    assert.equal(deadlocksAfter, deadlocksBefore, 'writers and deployments take their locks in one order');
    for (const id of created) assert.equal((await sam.get(`/data/Account/${id}?fields=id`)).status, 200);
  });
});
