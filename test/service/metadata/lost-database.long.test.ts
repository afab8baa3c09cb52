/** A deployment that is under way when PostgreSQL or NATS goes away: it goes on by itself, soon after that is back. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { startTestServer } from '../../support/database.ts';
import { createMetadataTenant, fieldFile, type MetadataTenant } from '../../support/metadata-tenant.ts';
import { type NatsServer, startNats } from '../../support/nats.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { startProxy, type TcpProxy } from '../../support/proxy.ts';

/** Maximum time until lost work resumes, as docs/reference/metadata.md promises. */
const TAKEN_MS = 5_000;
const AWAY_MS = 20_000;

describe('metadata: a running deployment', function () {
  this.timeout(120_000);
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let proxy: TcpProxy;
  let nats: NatsServer;
  let platform: TestPlatform;
  let t: MetadataTenant;
  before(async function () {
    this.timeout(240_000);
    [server, nats] = await Promise.all([startTestServer(), startNats()]);
    proxy = await startProxy(server.server.url);
    const database = { name: 'platform', url: proxy.url, drop: async () => {} };
    platform = await startPlatform({ seed: false, database, natsUrl: nats.url });
    t = await createMetadataTenant(platform);
  });
  after(async () => {
    await t?.database.close();
    await platform?.stop();
    await nats?.stop();
    await proxy?.close();
    await server?.server.stop();
    await rm(server.folder, { recursive: true, force: true });
  });

  /** Not by way of the proxy. */
  const connected = async (): Promise<pg.Client> => {
    const client = new pg.Client(server.server.url);
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  type State = { status: string; takes: number };
  const stateOf = async (client: pg.Client, deploymentId: string): Promise<State> => {
    const { rows } = await client.query<State>(
      'SELECT status, takes FROM metadata.deployments WHERE deployment_id = $1',
      [deploymentId],
    );
    return rows[0]!;
  };
  /** Begins a deployment, which waits in its transaction for a lock that the client holds. */
  const underWay = async (client: pg.Client, name: string): Promise<string> => {
    await client.query(`BEGIN; LOCK TABLE ${t.schema}."User" IN ACCESS SHARE MODE`);
    const { deploymentId } = await t.accept(fieldFile('User', name, 'fieldType: text'));
    while ((await stateOf(client, deploymentId)).status !== 'APPLYING') await pause(20);
    await pause(300);
    return deploymentId;
  };
  const takenAgain = async (deploymentId: string): Promise<State> => {
    const back = performance.now();
    const client = await connected();
    let state = await stateOf(client, deploymentId);
    for (; state.takes < 2 && state.status === 'APPLYING'; state = await stateOf(client, deploymentId)) await pause(20);
    const took = Math.round(performance.now() - back);
    await client.end();
    assert.ok(took < TAKEN_MS, `It was taken again after ${took} ms.`);
    return state;
  };
  const succeeded = async (deploymentId: string): Promise<void> => {
    const done = await t.finished(deploymentId);
    assert.deepEqual([done.status, done.metadataVersionAfter], ['SUCCEEDED', done.metadataVersionBefore + 1]);
  };

  it('resumes within 5 s after every connection was cut', async () => {
    const client = await connected();
    const deploymentId = await underWay(client, 'Cut__c');
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    );
    await client.query('ROLLBACK');
    await client.end();
    assert.equal((await takenAgain(deploymentId)).takes, 2);
    await succeeded(deploymentId);
  });

  it('resumes within 5 s of a restart of PostgreSQL', async () => {
    const client = await connected();
    const deploymentId = await underWay(client, 'Restart__c');
    const { pid } = server.server;
    process.kill(pid, 'SIGINT');
    while (server.server.pid === pid) await pause(20);
    await client.end().catch(() => {});
    assert.equal((await takenAgain(deploymentId)).takes, 2);
    await succeeded(deploymentId);
  });

  it('resumes within 5 s after a 20 s outage of PostgreSQL', async () => {
    const client = await connected();
    const deploymentId = await underWay(client, 'Away__c');
    await proxy.away();
    await client.query('ROLLBACK');
    await client.end();
    await pause(AWAY_MS);
    await proxy.back();
    assert.equal((await takenAgain(deploymentId)).takes, 2);
    await succeeded(deploymentId);
  });

  it('is not affected by an outage of NATS', async () => {
    const client = await connected();
    const deploymentId = await underWay(client, 'Bus__c');
    await nats.stop();
    await client.query('ROLLBACK');
    await succeeded(deploymentId);
    assert.equal((await stateOf(client, deploymentId)).takes, 1);
    await client.end();
    await nats.start();
  });
});
