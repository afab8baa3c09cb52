/** The stored outputs of ended runs are bounded: the oldest are removed first. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Database } from '../../../mixins/database/database.ts';
import { dropOldContents } from '../../../services/agent/upkeep/upkeep.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const OUTPUT_BYTES = 100_000;

describe('outputs of runs that have ended', () => {
  let platform: TestPlatform;
  let sam: Api;
  let database: Database;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 2, applicationName: 'runs test' });
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  it('are kept, newest first, up to the limit', async () => {
    const begin = async (): Promise<string> => {
      const plan = [{ stepKey: 'one', operationId: 'data.records.list', summary: 'Look.' }];
      const reply = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Count deals.', plan });
      assert.equal(reply.status, 201, reply.text);
      return reply.body.runId;
    };
    const runIds: string[] = [];
    for (let i = 0; i < 4; i++) {
      const runId = await begin();
      const output = { text: randomBytes((OUTPUT_BYTES * 3) / 4).toString('base64') };
      const ended = await sam.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.', output });
      assert.equal(ended.status, 201, ended.text);
      runIds.push(runId);
    }
    const active = await begin();
    await dropOldContents(database, new AbortController().signal, (_, error) => assert.fail(String(error)), 250_000);
    const kept = [];
    for (const runId of runIds) {
      const { body } = await sam.get(`/agent/runs/${runId}`);
      assert.deepEqual([body.status, body.summary], ['COMPLETED', 'Done.']);
      kept.push([body.output !== null, body.plan !== null]);
    }
    assert.deepEqual(kept, [
      [false, false],
      [false, false],
      [true, true],
      [true, true],
    ]);
    assert.equal((await sam.get(`/agent/runs/${active}`)).body.plan.length, 1);
  });

  it('are removed from the user with the most of them, not from others with older ones', async () => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const ended = async (who: Api): Promise<string> => {
      const { runId } = (await who.post('/agent/runs', { agentKey: 'tester', goal: 'Count deals.' })).body;
      const output = { text: randomBytes((OUTPUT_BYTES * 3) / 4).toString('base64') };
      const reply = await who.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.', output });
      assert.equal(reply.status, 201, reply.text);
      return runId;
    };
    const oldest = await ended(ada);
    const many = [await ended(sam), await ended(sam), await ended(sam)];
    await dropOldContents(database, new AbortController().signal, (_, error) => assert.fail(String(error)), 300_000);
    const kept = async (who: Api, runId: string): Promise<boolean> =>
      (await who.get(`/agent/runs/${runId}`)).body.output !== null;
    assert.equal(await kept(ada, oldest), true);
    assert.deepEqual(await Promise.all(many.map((runId) => kept(sam, runId))), [false, false, true]);
  });
});
