/** The budget of a run: what names the part that is used up, what counts, and what commits say the same. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../lib/limits.ts';
import { Database } from '../../../mixins/database/database.ts';
import { continueRunSql } from '../../../mixins/mutation/agent-run.sql.ts';
import { countStatement, lockDayStatement } from '../../../services/agent/admission/admit.sql.ts';
import { budgetRefusal, dayRefusal, type UsedDay } from '../../../services/agent/admission/decide.ts';
import { dayBudgetOf } from '../../../services/agent/policy/evaluate.ts';
import { type LockedRun, lockRunStatement } from '../../../services/agent/runs/run.sql.ts';
import { aDeletion, contextOf } from '../../support/agents.ts';
import { api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const MAX = { cost: 10, mutations: 3, records: 5 };
const REQUESTS = LIMITS.agent_requests_of_run_max;
const DAY = { maxCostPerDay: 30, maxMutationsPerDay: 7, maxRecordsPerDay: 9 };
const FREE = dayBudgetOf([]);

describe('the budget of a run', () => {
  let platform: TestPlatform;
  let database: Database;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 2, applicationName: 'budget test' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  it('is decided alike everywhere', async function () {
    this.timeout(60_000);
    const request = await contextOf(api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam')));
    const { tenantId, userId, clientId } = request;
    let [cases, admitted] = [0, 0];
    for (const cost of [0, MAX.cost - 2, MAX.cost - 1, MAX.cost])
      for (const requests of [0, REQUESTS - 1, REQUESTS])
        for (const mutations of [0, MAX.mutations - 1, MAX.mutations])
          for (const records of [0, MAX.records - 1, MAX.records])
            for (const mutation of [true, false]) {
              const runId = randomUUID();
              await database.query(
                `INSERT INTO agent.runs (tenant_id, run_id, agent_key, goal, dry_run, user_id, client_id, grant_id,
                   max_cost, max_mutations, max_records, cost, requests, mutations, records_changed, expires_at)
                 VALUES ($1, $2, 'a', 'b', false, $3, $4, 'g', $5, $6, $7, $8, $9, $10, $11, now() + interval '1 hour')`,
                [tenantId, runId, userId, clientId, MAX.cost, MAX.mutations, MAX.records].concat([
                  cost,
                  requests,
                  mutations,
                  records,
                ] as never[]),
              );
              const call = aDeletion(runId, { cost: 2, mutation });
              const told = JSON.stringify({ cost, requests, mutations, records, mutation });
              await database.shared('agent', tenantId, async (tx) => {
                const run = await tx.one<LockedRun>(lockRunStatement(tenantId, runId, { userId, clientId }));
                const refusal = budgetRefusal(run, { cost: 2, mutations: mutation ? 1 : 0 });
                const counted = await tx.first(countStatement({ request, call, stepId: randomUUID() }, null, FREE));
                assert.equal(Boolean(counted), refusal === null, told);
                cases++;
                if (refusal === null) admitted++;
              });
              const { text, values } = continueRunSql({ tenantId, runId, requestId: request.requestId }, 1);
              const [row] = await database.shared('agent', tenantId, (tx) =>
                tx.all<{ verdict: string }>({ text, values }),
              );
              assert.equal(row?.verdict, records < MAX.records ? 'RUNNING' : 'AGENT_BUDGET_EXCEEDED', told);
            }
    assert.deepEqual([cases, admitted], [216, 52]);
  });

  it('per day is decided alike everywhere, and resets after 24 hours', async function () {
    this.timeout(60_000);
    const request = await contextOf(api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia')));
    const { tenantId, userId, clientId } = request;
    const runId = randomUUID();
    await database.query(
      `INSERT INTO agent.runs (tenant_id, run_id, agent_key, goal, dry_run, user_id, client_id, grant_id,
         max_cost, max_mutations, max_records, expires_at)
       VALUES ($1, $2, 'a', 'b', false, $3, $4, 'g', 10000, 1000, 10000, now() + interval '1 hour')`,
      [tenantId, runId, userId, clientId],
    );
    let [cases, admitted] = [0, 0];
    for (const hours of [23, 25])
      for (const cost of [0, 28, 29, 30])
        for (const mutations of [0, 6, 7])
          for (const records of [0, 8, 9])
            for (const mutation of [true, false]) {
              await database.query('DELETE FROM agent.days WHERE tenant_id = $1', [tenantId]);
              await database.query(
                `INSERT INTO agent.days (tenant_id, client_id, user_id, began_at, cost, mutations, records, max_records)
                 VALUES ($1, $2, $3, clock_timestamp() - make_interval(hours => $4), $5, $6, $7, 9)`,
                [tenantId, clientId, userId].concat([hours, cost, mutations, records] as never[]),
              );
              const call = aDeletion(runId, { cost: 2, mutation });
              const told = JSON.stringify({ hours, cost, mutations, records, mutation });
              await database.shared('agent', tenantId, async (tx) => {
                const day = await tx.first<UsedDay>(lockDayStatement({ request, call }));
                assert.equal(Boolean(day), hours < 24, told);
                const refusal = dayRefusal(day ?? null, { cost: 2, mutations: mutation ? 1 : 0 }, DAY);
                const counted = await tx.first(countStatement({ request, call, stepId: randomUUID() }, null, DAY));
                assert.equal(Boolean(counted), refusal === null, told);
                cases++;
                if (refusal === null) admitted++;
              });
              const { text, values } = continueRunSql({ tenantId, runId, requestId: request.requestId }, 1);
              const [row] = await database.shared('agent', tenantId, (tx) =>
                tx.all<{ verdict: string }>({ text, values }),
              );
              const [code, budget] = (row?.verdict ?? '').split(/ (.*)/s);
              const room = hours > 24 || records < 9;
              assert.equal(code, room ? 'RUNNING' : 'AGENT_BUDGET_EXCEEDED', told);
              if (!room) assert.equal(JSON.parse(budget ?? '{}').budget, 'maxRecordsPerDay');
            }
    assert.deepEqual([cases, admitted], [144, 98]);
  });
});
