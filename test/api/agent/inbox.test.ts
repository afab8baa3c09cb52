/** Lists of approvals and runs in a tenant with many of them. */
import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { approvalsStatement } from '../../../services/agent/approvals/approval.sql.ts';
import { activeRunsStatement, runsStatement } from '../../../services/agent/runs/run.sql.ts';
import * as upkeep from '../../../services/agent/upkeep/upkeep.sql.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const GOAL = { agentKey: 'dunning', goal: 'Remind customers of overdue invoices.' };
/** More rows than one response scans. */
const MANY = 6_000;
/** MD5 of 1. */
const SMALL_TENANT = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';

describe('lists of many approvals', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let database: Database;
  let sam: Api;
  let mia: Api;
  let sue: Api;
  let tenantId: string;
  const userIds = new Map<Api, string>();
  before(async () => {
    platform = await startPlatform();
    const as = async (name: string): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    [sam, mia, sue] = [await as('sam'), await as('mia'), await as('sue')];
    database = new Database(platform.database.url, { size: 2, applicationName: 'inbox test' });
    for (const who of [sam, mia, sue]) {
      const { tenant, user } = (await who.get('/identity')).body;
      tenantId = tenant.id;
      userIds.set(who, user.id);
    }
    // On behalf of three users, oldest first. Only ada decides them; those of sam have ended.
    await ask(sue, 1, 3);
    await ask(mia, 2, 3);
    await ask(sam, 3, MANY, 'REJECTED');
    await database.query('ANALYZE agent.approvals, agent.runs');
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  /** Approvals of one run; `batch` gives their position in the order. */
  async function ask(who: Api, batch: number, count: number, status = 'PENDING'): Promise<void> {
    const { runId } = (await who.post('/agent/runs', GOAL)).body;
    await database.query(
      `INSERT INTO agent.approvals (tenant_id, approval_id, run_id, status, user_id, operation_id, method, path,
         path_parameters, risk, summary, query, headers, body_omitted, fingerprint, idempotency_key, required_approvals,
         approvers, allow_self_approval, escalate_to, expires_at)
       SELECT $1, ('0000000' || $2::text || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $3, $4, $5,
         'data.records.delete', 'DELETE', '/api/v1/data/Invoice__c/x', '{"objectApiName": "Invoice__c", "id": "x"}', 'high',
         'DELETE Invoice__c', '{}', '{}', false, n::text, n::text, 1, '[{"user": "ada"}]', false, '[]',
         now() + interval '1 hour'
       FROM generate_series(1, $6::integer) n`,
      [tenantId, batch, runId, status, userIds.get(who), count],
    );
  }
  const list = (who: Api, query: string): Promise<Answer> => who.get(`/agent/approvals?${query}`);

  it('ends only when there is nothing more to see', async () => {
    const first = await list(mia, 'take=2');
    assert.deepEqual([first.body.records, typeof first.body.nextCursor], [[], 'string']);
    const seen: number[] = [];
    for (let cursor: string | null = first.body.nextCursor; cursor !== null; ) {
      const { status, body, text } = await list(mia, `take=2&cursor=${cursor}`);
      assert.equal(status, 200, text);
      seen.push(body.records.length);
      cursor = body.nextCursor;
    }
    assert.deepEqual(seen, [2, 1]);
  });

  it('shows users who oversee no agents their own, whatever lies between', async () => {
    const { body } = await list(sue, 'take=3');
    assert.deepEqual([body.records.length, body.nextCursor], [3, null]);
  });

  it('finds waiting approvals without reading ended ones', async () => {
    const { body } = await list(mia, 'status=PENDING&take=50');
    assert.deepEqual([body.records.length, body.nextCursor], [3, null]);
  });

  describe('the statements', () => {
    const all = { userId: null, clientId: null };
    const page = { before: null, take: 51 };
    const planOf = async ({ text, values }: Statement): Promise<string> =>
      (await database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, [...(values ?? [])])).rows
        .map((row) => row['QUERY PLAN'])
        .join('\n');
    const cases: readonly [string, () => Statement, RegExp][] = [
      [
        'pending approvals',
        () => approvalsStatement(tenantId, all, { ...page, status: 'PENDING' }),
        /approvals_pending/,
      ],
      [
        'approvals of a user',
        () => approvalsStatement(tenantId, { userId: userIds.get(sue)!, clientId: null }, { ...page, status: null }),
        /approvals_user/,
      ],
      [
        'active runs',
        () => runsStatement(tenantId, all, { ...page, status: 'RUNNING', agentKey: null }),
        /runs_running/,
      ],
      ['the number of active runs', () => activeRunsStatement(SMALL_TENANT, userIds.get(sue)!), /runs_running/],
      ['active runs of all tenants', () => upkeep.grantedRunsStatement(null, 200), /runs_upkeep/],
    ];
    before(async () => {
      // Of many tenants, with some active and waiting runs, and more that have ended.
      await database.query(
        `INSERT INTO agent.runs (tenant_id, run_id, status, agent_key, goal, dry_run, user_id, client_id, grant_id,
           max_cost, max_mutations, max_records, expires_at, ended_at)
         SELECT CASE WHEN n % 3 = 0 THEN $1 ELSE md5((n % 100)::text)::uuid END, md5(n::text)::uuid, CASE WHEN n % 7 = 0 THEN 'RUNNING' ELSE 'COMPLETED' END,
           'a', 'b', false, gen_random_uuid(), 'c', 'copy ' || n, 1, 1, 1, now() + interval '1 hour',
           CASE WHEN n % 7 = 0 THEN NULL ELSE now() END
         FROM generate_series(1, 20000) n`,
        [tenantId],
      );
      await database.query(
        `INSERT INTO agent.approvals
         SELECT copy.* FROM agent.runs r, (SELECT * FROM agent.approvals WHERE status = 'PENDING' LIMIT 1) a,
           jsonb_populate_record(NULL::agent.approvals, to_jsonb(a) || jsonb_build_object('tenant_id', r.tenant_id,
             'run_id', r.run_id, 'approval_id', r.run_id, 'user_id', r.user_id,
             'status', CASE r.status WHEN 'RUNNING' THEN 'PENDING' ELSE 'REJECTED' END)) copy
         WHERE r.grant_id ^@ 'copy '`,
      );
      await database.query('ANALYZE agent.approvals, agent.runs');
    });
    for (const [name, statement, index] of cases)
      it(`read ${name} by an index`, async () => {
        assert.match(await planOf(statement()), index);
      });
  });
});
