/** Mails to the deciders of an agent's request. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { expireDue } from '../../../services/agent/upkeep/upkeep.ts';
import type { Answer } from '../../support/client.ts';
import { type MailServer, mailServer, recipient } from '../../support/mail.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const SUBJECT = /request of an agent/;
const DELETES = { operationIds: ['data.records.delete'], decision: 'approve' };

describe('mails about requests of agents', function () {
  this.timeout(180_000);
  let server: MailServer;
  let deals: Deals;
  let database: Database;
  before(async () => {
    server = await mailServer();
    const SMTP_URL = `smtp://127.0.0.1:${server.port}?starttls=off`;
    deals = await startDeals({ env: { SMTP_URL, MAIL_FROM: 'ERP <no-reply@erp.example>' } });
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'notices test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
    await server?.close();
  });

  const deploy = (rule: object): Promise<void> => {
    const policy = { type: 'AgentPolicy', apiName: 'Deals', appliesTo: { clients: ['*'] }, rules: [rule] };
    return deals.deploy({ 'agentPolicies/Deals.yaml': JSON.stringify(policy) });
  };
  /** A waiting deletion on behalf of sam. */
  const ask = async (): Promise<{ approvalId: string; name: string }> => {
    const { sam } = deals.as;
    const name = `Secret ${randomUUID()}`;
    const deal = await deals.deal(sam, { name });
    const { runId } = (await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy deals.' })).body;
    const headers = { 'x-agent-run-id': runId };
    const reply: Answer = await sam.delete(`/data/Deal__c/${deal.body.id}`, {
      etag: deal.headers.get('etag') ?? '',
      idempotencyKey: randomUUID(),
      headers,
    });
    assert.equal(reply.body.code, 'APPROVAL_REQUIRED', reply.text);
    return { approvalId: reply.body.details.approvalId, name };
  };
  const count = async (sql: string, approvalId: string): Promise<number> =>
    (await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${sql}`, [approvalId])).rows[0]?.n ?? -1;
  /** Every decider has been notified, and every mail has been sent. */
  const settled = async (approvalId: string): Promise<void> => {
    for (const end = performance.now() + 30_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
      const waits = await count('agent.approvals WHERE notice IS NOT NULL AND approval_id = $1', approvalId);
      if (waits + (await count('auth.mails WHERE ended_at IS NULL AND approval_id = $1', approvalId)) === 0) return;
      assert.ok(performance.now() < end, 'mails still wait');
    }
  };
  const readers = async (approvalId: string): Promise<string[]> =>
    (await server.mails.all({ subject: SUBJECT }))
      .filter(({ text }) => text?.includes(`/approvals/${approvalId}`))
      .map(recipient)
      .sort();

  it('name the client, the user, the request and its deadline, and no value of a record', async () => {
    await deploy({ ...DELETES, approvers: [{ user: deals.ids.mia }] });
    const { approvalId, name } = await ask();
    await settled(approvalId);
    assert.deepEqual(await readers(approvalId), ['mia@demo.example']);
    const [mail] = await server.mails.all({ subject: SUBJECT });
    const text = mail?.text ?? '';
    for (const part of ['tester', 'Sam', 'data.records.delete', 'DELETE Deal__c', `/approvals/${approvalId}`])
      assert.ok(text.includes(part), `${part} in ${text}`);
    assert.ok(!server.raw.join('').includes(name));
  });

  it('reach deciders only', async () => {
    await deploy(DELETES);
    const { approvalId } = await ask();
    await settled(approvalId);
    const found = await readers(approvalId);
    assert.ok(found.includes('ada@demo.example') && found.includes('mia@demo.example'), String(found));
    assert.ok(!found.includes('sam@demo.example'), 'the user in whose name the agent acts');
    for (const to of found) {
      const who = to.split('@')[0] as keyof typeof deals.as;
      const reads = await deals.as[who].get(`/agent/approvals/${approvalId}`);
      assert.equal(reads.status, 200, `${to} ${reads.text}`);
    }
  });

  it('go to more deciders when the request stays undecided for too long, and to none of them twice', async () => {
    const escalation = { escalateAfterSeconds: 600, escalateTo: [{ user: deals.ids.ada }, { user: deals.ids.mia }] };
    await deploy({ ...DELETES, approvers: [{ user: deals.ids.mia }], ...escalation });
    const { approvalId } = await ask();
    await settled(approvalId);
    assert.deepEqual(await readers(approvalId), ['mia@demo.example']);
    await database.query('UPDATE agent.approvals SET escalate_at = clock_timestamp() WHERE approval_id = $1', [
      approvalId,
    ]);
    await expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));
    await settled(approvalId);
    assert.deepEqual(await readers(approvalId), ['ada@demo.example', 'mia@demo.example']);
    // As after a process that died before it recorded its work.
    await database.query(`UPDATE agent.approvals SET notice = 'asked' WHERE approval_id = $1`, [approvalId]);
    await settled(approvalId);
    assert.deepEqual(await readers(approvalId), ['ada@demo.example', 'mia@demo.example']);
  });

  it('are limited per recipient and hour', async () => {
    await database.query('DELETE FROM auth.mails');
    const { tenant, user } = (await deals.as.mia.get('/identity')).body;
    const asked = Array.from({ length: 25 }, () => randomUUID());
    for (const approvalId of asked)
      await call(deals.platform.broker, 'auth.mails.askApprovers', {
        tenantId: tenant.id,
        approvalId,
        userIds: [user.id],
        request: {
          clientId: 'erp-cli',
          agentKey: 'tester',
          inNameOf: 'Sam',
          operationId: 'data.records.delete',
          summary: 'DELETE Deal__c',
          expiresAt: '2099-01-01T00:00:00Z',
        },
      });
    assert.equal(await count('auth.mails WHERE kind = $1', 'approvalRequested'), 20);
  });
});
