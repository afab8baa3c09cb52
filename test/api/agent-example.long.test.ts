/** The agent of docs/guides/agent-overdue-invoices.ts as a process of its own, with people who decide meanwhile. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { after, before, beforeEach, describe, it } from 'mocha';
import { Database } from '../../mixins/database/database.ts';
import { signIn } from '../../scripts/sign-in.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { exampleNamed } from '../support/examples.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { root } from '../support/sources.ts';
import { sharedFolder } from '../support/temporary.ts';
import { Browser } from './auth/browser.ts';

const SCRIPT = join(root, 'docs/guides/agent-overdue-invoices.ts');
const CLIENT = 'demo-DunningAgent';
const SCOPES = 'data:read data:write actions:read actions:execute agent:run offline_access';

interface Agent {
  readonly process: ChildProcess;
  /** Output so far. */
  output(): string;
  /** Resolves once the process has printed this, or has ended. */
  until(text: RegExp): Promise<RegExpExecArray>;
  readonly exitCode: Promise<number | null>;
}

/** The edge of the platform: connections are cut while it is closed, and 503 while services behind it are away. */
async function startEdge(target: string): Promise<{ url: string; state: string; stop(): void }> {
  const edge = { url: '', state: 'open', stop: () => void server.close() };
  const server = createServer(async (request, response) => {
    if (edge.state === 'closed') return request.destroy();
    if (edge.state === 'unavailable')
      return response.writeHead(503, { 'retry-after': '1' }).end('{"code":"SERVICE_UNAVAILABLE","retryable":true}');
    const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = request.headers;
    const body = await buffer(request);
    const answer = await fetch(target + request.url, {
      method: request.method!,
      headers: headers as Record<string, string>,
      ...(body.length > 0 ? { body } : {}),
    });
    const { 'content-encoding': ____, 'content-length': _____, ...sent } = Object.fromEntries(answer.headers);
    return response.writeHead(answer.status, sent).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  edge.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return edge;
}

describe('the agent that chases overdue invoices', function () {
  this.timeout(90_000);
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;
  let ada: Api;
  let database: Database;
  const running = new Set<ChildProcess>();

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 1, applicationName: 'agent example test' });
    [sam, mia, ada] = (await Promise.all(
      ['sam', 'mia', 'ada'].map(async (who) => api(platform.baseUrl, await tokenFor(platform.baseUrl, who))),
    )) as [Api, Api, Api];
  });
  // A rejection holds for a day: the agent of each test comes a day later.
  beforeEach(() => database.query(`UPDATE agent.decisions SET decided_at = decided_at - interval '25 hours'`));
  after(async () => {
    for (const one of running) one.kill();
    await database?.close();
    await platform?.stop();
  });

  function start(args: readonly string[], token?: string): Agent {
    const address = args.includes('--base-url') ? [] : ['--base-url', platform.baseUrl];
    return launch(process.execPath, [SCRIPT, ...address, ...args], token ? { AGENT_TOKEN: token } : {});
  }
  function launch(command: string, args: readonly string[], more: Record<string, string>): Agent {
    const { AGENT_TOKEN: _, ...env } = process.env;
    const child = spawn(command, args, { env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (printed += text));
    const exitCode = new Promise<number | null>((resolve) =>
      child.on('close', (code) => {
        running.delete(child);
        resolve(code);
      }),
    );
    return {
      process: child,
      output: () => printed,
      exitCode,
      async until(text) {
        for (const end = performance.now() + 30_000; performance.now() < end; await pause(50)) {
          const found = text.exec(printed);
          if (found) return found;
          if (child.exitCode !== null) break;
        }
        return assert.fail(`the agent never printed ${text}:\n${printed}`);
      },
    };
  }
  const tokenOfAgent = async (): Promise<string> =>
    (
      await signIn({
        baseUrl: platform.baseUrl,
        user: 'sam@demo.example',
        password: 'demo-password',
        clientId: CLIENT,
        scope: SCOPES,
      })
    ).access_token;
  /** Executes the commands that the agent's terminal prints for the person. */
  async function allow(agent: Agent): Promise<void> {
    const [, address, code] = await agent.until(/Open (\S+)\s+and compare the code: (\S+)/);
    const browser = new Browser();
    let page = await browser.submit(await browser.visit(address!));
    assert.match(page.html, new RegExp(code!));
    page = await browser.submit(page);
    page = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    assert.match(page.html, /Allow Dunning agent\?/);
    assert.match((await browser.submit(page)).html, /Your device is connected/);
  }
  const approvalsOf = async (runId: string) => {
    const { records } = (await mia.get('/agent/approvals?status=PENDING')).body;
    const ofRun = records.filter((one: { runId: string }) => one.runId === runId);
    return Promise.all(
      ofRun.map(async (one: { approvalId: string }) => (await mia.get(`/agent/approvals/${one.approvalId}`)).body),
    );
  };
  const decide = (
    { approvalId, fingerprint }: { approvalId: string; fingerprint: string },
    decision: 'approve' | 'reject',
    comment?: string,
  ) => mia.post(`/agent/approvals/${approvalId}/decision`, { decision, fingerprint, ...(comment ? { comment } : {}) });
  const runIdOf = async (agent: Agent): Promise<string> => (await agent.until(/Run ([0-9a-f-]{36})/))[1]!;
  const invoiceOf = async ({ path }: { path: string }) => {
    const [, id] = /Invoice__c\/([0-9a-f-]{36})/.exec(path)!;
    return (await sam.get(`/data/Invoice__c/${id}?fields=name,DunningLevel__c,Notes__c`)).body;
  };

  it('drafts, asks for approval, sends what was approved, and can be traced and reverted', async () => {
    const printed = exampleNamed('docs/guides/let-an-agent-work.md#1-start-the-agent');
    const agent = launch('bash', ['--norc', '-c', printed], {
      REPOSITORY: root,
      TMPDIR: sharedFolder('written'),
      BASE_URL: platform.baseUrl,
    });
    await allow(agent);
    const runId = await runIdOf(agent);
    await agent.until(/Wait for people/);
    const [first, second, third, ...more] = await approvalsOf(runId);
    assert.ok(first && second && third && more.length === 0);
    assert.deepEqual([first.operationId, first.risk, first.preview.valid], ['data.transitions.execute', 'high', true]);
    const before = [await invoiceOf(first), await invoiceOf(second), await invoiceOf(third)];
    for (const { Notes__c } of before) assert.match(Notes__c, /Reminder \d of 3 \(\w+\), drafted by an agent: Dear /);

    assert.equal((await decide(first, 'approve')).status, 201);
    await agent.until(/approved, the reminder is sent/);
    for (const one of [second, third]) assert.equal((await decide(one, 'reject', 'They pay tomorrow.')).status, 201);
    assert.equal(await agent.exitCode, 0, agent.output());
    assert.match(agent.output(), /rejected, “They pay tomorrow\.”/);
    assert.match(agent.output(), /The run is COMPLETED: 1 sent, 2 rejected, 0 not decided, 3 proposed\./);
    const after = [await invoiceOf(first), await invoiceOf(second)];
    assert.equal(after[0].DunningLevel__c, before[0].DunningLevel__c + 1);
    assert.equal(after[1].DunningLevel__c, before[1].DunningLevel__c);

    const run = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([run.status, run.outcome, run.usage.recordsChanged], ['COMPLETED', 'succeeded', 4]);
    assert.deepEqual(
      run.output.invoices.map((one: { name: string; outcome: string }) => [one.name, one.outcome]).sort(),
      [
        [before[0].name, 'sent'],
        [before[1].name, 'rejected'],
        [before[2].name, 'rejected'],
      ].sort(),
    );
    const steps = (await sam.get(`/agent/runs/${runId}/steps?take=200`)).body.records;
    const executed = steps.filter((one: { approvalId: string }) => one.approvalId === first.approvalId);
    assert.deepEqual(
      executed.map((one: { status: number }) => one.status),
      [403, 201],
    );
    const trail = (await ada.get(`/events/audit?agentRunId=${runId}`)).body.records;
    assert.ok(trail.some((one: { operationId: string }) => one.operationId === 'agent.approvals.decide'));

    const reverted = await mia.post(`/agent/runs/${runId}/revert`);
    assert.equal(reverted.status, 201, reverted.text);
    assert.doesNotMatch((await invoiceOf(second)).Notes__c ?? '', /drafted by an agent/);
    assert.deepEqual(
      reverted.body.skipped.map((one: { reason: string }) => one.reason),
      ['STATE_CHANGED'],
      'a reminder that went out is not undone',
    );
  });

  it('sends nothing that was rejected, and exits with 2', async () => {
    const agent = start(['--take', '2'], await tokenOfAgent());
    const runId = await runIdOf(agent);
    await agent.until(/Wait for people/);
    const pending = await approvalsOf(runId);
    const before = await Promise.all(pending.map(invoiceOf));
    for (const one of pending) assert.equal((await decide(one, 'reject', 'No \x1b[31mreminders now.')).status, 201);
    assert.equal(await agent.exitCode, 2, agent.output());
    assert.ok(!agent.output().includes('\x1b[31mreminders'), 'what people type gives the terminal no commands');
    const levels = async () => (await Promise.all(pending.map(invoiceOf))).map((one) => one.DunningLevel__c);
    assert.deepEqual(
      await levels(),
      before.map((one) => one.DunningLevel__c),
    );
  });

  it('stops waiting after the given time, cancels its proposals and exits with 3', async () => {
    const agent = start(['--take', '1', '--wait', '2'], await tokenOfAgent());
    const runId = await runIdOf(agent);
    assert.equal(await agent.exitCode, 3, agent.output());
    const run = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([run.status, run.pendingApprovals], ['CANCELED', []]);
    assert.deepEqual(await approvalsOf(runId), []);
  });

  it('exits with 4 when the user revokes its authorization', async () => {
    const agent = start(['--take', '1'], await tokenOfAgent());
    const runId = await runIdOf(agent);
    await agent.until(/Wait for people/);
    const { records } = (await sam.get('/me/connections')).body;
    const connection = records.find((one: { clientId: string }) => one.clientId === CLIENT);
    assert.deepEqual([connection.clientName, connection.agent], ['Dunning agent', true]);
    assert.equal((await sam.delete(`/me/connections/${connection.connectionId}`)).status, 204);
    assert.equal(await agent.exitCode, 4, agent.output());
    for (let attempt = 0; ; attempt++) {
      const { status } = (await sam.get(`/agent/runs/${runId}`)).body;
      if (status === 'CANCELED') break;
      assert.ok(attempt < 50, `the run is ${status}`);
      await pause(100);
    }
    assert.deepEqual(await approvalsOf(runId), []);
  });

  for (const [signal, exitCode, summary] of [
    ['SIGINT', 130, 'Interrupted at the terminal.'],
    ['SIGTERM', 143, 'The process was terminated.'],
  ] as const)
    it(`cancels its proposals at ${signal}`, async () => {
      const agent = start(['--take', '1'], await tokenOfAgent());
      const runId = await runIdOf(agent);
      await agent.until(/Wait for people/);
      agent.process.kill(signal);
      assert.equal(await agent.exitCode, exitCode, agent.output());
      const run = (await sam.get(`/agent/runs/${runId}`)).body;
      assert.deepEqual([run.status, run.summary], ['CANCELED', summary]);
      assert.deepEqual(await approvalsOf(runId), []);
    });

  it('waits while the platform restarts, then continues', async () => {
    const edge = await startEdge(platform.baseUrl);
    try {
      const agent = start(['--base-url', edge.url, '--take', '1'], await tokenOfAgent());
      const runId = await runIdOf(agent);
      await agent.until(/Wait for people/);
      const [approval] = await approvalsOf(runId);
      edge.state = 'closed';
      await pause(4_000);
      edge.state = 'unavailable';
      await pause(8_000);
      assert.equal(agent.process.exitCode, null, agent.output());
      assert.equal((await decide(approval, 'approve')).status, 201);
      edge.state = 'open';
      assert.equal(await agent.exitCode, 0, agent.output());
      assert.match(agent.output(), /1 sent, 0 rejected, 0 not decided, 1 proposed/);
    } finally {
      edge.stop();
    }
  });

  it('stores nothing in a rehearsal', async () => {
    const where = encodeURIComponent(JSON.stringify({ Status__c: 'overdue' }));
    const overdue = () => sam.get(`/data/Invoice__c?where=${where}&fields=recordVersion&take=200`);
    const before = (await overdue()).body.records;
    const agent = start(['--rehearse'], await tokenOfAgent());
    assert.equal(await agent.exitCode, 0, agent.output());
    assert.match(agent.output(), /a rehearsal: nothing is stored/);
    assert.match(agent.output(), /The run is COMPLETED: A rehearsal: 3 would be proposed\./);
    assert.deepEqual((await overdue()).body.records, before);
  });

  it('reports errors and exits with 1', async () => {
    const nobody = start(['--base-url', 'http://127.0.0.1:1'], 'no token');
    assert.equal(await nobody.exitCode, 1);
    assert.match(nobody.output(), /No platform answers at http:\/\/127\.0\.0\.1:1\./);
    const nonsense = start(['--take', '1000']);
    assert.equal(await nonsense.exitCode, 1);
    assert.match(nonsense.output(), /--take is a number up to 20/);
    const forged = start([], 'no token');
    assert.equal(await forged.exitCode, 1);
    assert.match(forged.output(), /TOKEN_INVALID/);
  });
});
