/** A revert whose process is killed between two records: the same request, sent to another process, finishes it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES } from '../../../config/services.ts';
import { Database } from '../../../mixins/database/database.ts';
import { api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { type ServiceProcess, startProcess } from '../../support/processes.ts';

const RECORDS = 150;

describe('a revert that is killed halfway', () => {
  let platform: TestPlatform;
  let doomed: ServiceProcess | undefined;
  let database: Database;
  before(async function () {
    this.timeout(180_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 1, applicationName: 'revert test' });
    doomed = await startProcess({ services: ALL_SERVICES, databaseUrl: platform.database.url, natsUrl: '' });
  });
  after(async () => {
    await doomed?.kill();
    await database?.close();
    await platform?.stop();
  });

  it('is finished by the same request, and reverts no record twice', async function () {
    this.timeout(120_000);
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const begun = await ada.post('/agent/runs', {
      agentKey: 'tidy',
      goal: 'Tidy up.',
      budget: { maxCost: 10_000, maxMutations: 1_000, maxRecords: 1_000 },
    });
    const { runId } = begun.body;
    const headers = { 'x-agent-run-id': runId };
    const ids: string[] = [];
    for (let count = 0; count < RECORDS; count++) {
      const { id } = (await ada.post('/data/Account', { name: randomUUID(), city: 'Berlin' })).body;
      const changed = await ada.patch(`/data/Account/${id}`, { city: 'Bonn' }, { etag: '"1"', headers });
      assert.equal(changed.status, 200, changed.text);
      ids.push(id);
    }
    await ada.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.' });

    const key = { idempotencyKey: randomUUID() };
    const path = `/agent/runs/${runId}/revert`;
    const other = api(doomed!.baseUrl, await tokenFor(doomed!.baseUrl, 'ada'));
    const lost = other.post(path, undefined, key).then(
      () => 'answered',
      () => 'lost',
    );
    const tenant = await database.query<{ id: string }>(`SELECT id FROM metadata.tenants WHERE key = 'demo'`);
    const schema = `t_${tenant.rows[0]!.id.replaceAll('-', '')}`;
    const undone = async (): Promise<number> => {
      const { rows } = await database.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM ${schema}._audit
          WHERE agent_run_id = $1 AND operation_id = 'agent.runs.revert' AND kind = 'update'`,
        [runId],
      );
      return rows[0]!.n;
    };
    while ((await undone()) < 10) await pause(1);
    await doomed!.kill();
    assert.equal(await lost, 'lost');
    const half = await undone();
    assert.ok(half >= 10 && half < RECORDS, `${half} of ${RECORDS}`);

    const answer = await ada.post(path, undefined, key);
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual([answer.body.reverted.length, answer.body.skipped, answer.body.remaining], [RECORDS, [], 0]);
    assert.equal(await undone(), RECORDS);
    const { rows } = await database.query(
      `SELECT DISTINCT city, "recordVersion" AS version FROM ${schema}."Account" WHERE id = ANY($1)`,
      [ids],
    );
    assert.deepEqual(rows, [{ city: 'Berlin', version: 3 }]);
    assert.deepEqual((await ada.post(path, undefined, key)).body, answer.body);
  });
});
