/**
 * The platform by docker-compose.yml, in the words of the page: it is brought up, its operator works on it, gives it new keys of the
 * bus and upgrades it, and people work before and after.
 */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { signIn } from '../../scripts/sign-in.ts';
import { store } from '../api/files/world.ts';
import { type Api, api } from '../support/client.ts';
import { exampleNamed } from '../support/examples.ts';
import { inSteps } from '../support/steps.ts';
import { Installation } from './compose/installation.ts';
import { until } from './stage.ts';

const PAGE = 'docs/reference/operations-cluster.md';

describe('the platform by docker-compose.yml', function () {
  this.timeout(120_000);
  inSteps();
  let installation: Installation;
  let baseUrl: string;
  let sam: Api;
  let record: { id: string; name: string };

  before(async function () {
    // Every container has a loopback address of its own, which other systems do not give.
    if (process.platform !== 'linux') this.skip();
    const port = String(await freePort());
    baseUrl = `http://localhost:${port}`;
    installation = new Installation({ PORT: port, LOG_LEVEL: 'warn', PATH: process.env['PATH']! });
  });
  after(() => installation?.end());
  afterEach('no process ended by itself', () => assert.deepEqual(installation?.crashes() ?? [], []));

  const run = (name: string, input?: string): Promise<string> =>
    installation.shell(exampleNamed(`${PAGE}#${name}`), input);
  const complete = async (): Promise<boolean> => {
    const { status, degraded } = (await (await fetch(`${baseUrl}/readyz`)).json()) as Record<string, unknown>;
    return status === 'ready' && degraded === undefined;
  };
  const samSignsIn = async (): Promise<Api> => {
    const password = installation.variable('DEMO_PASSWORD');
    return api(baseUrl, (await signIn({ baseUrl, user: 'sam@demo.example', password })).access_token);
  };

  it('does not start without the secrets', async () => {
    await assert.rejects(
      installation.shell('docker compose up'),
      /required variable \w+ is missing a value: see README/,
    );
  });

  it('starts and serves the demo tenant', async () => {
    await run('docker-compose');
    assert.equal(statSync(join(installation.folder, '.env')).mode & 0o077, 0);
    await until('all see each other', complete, 20_000);
    // Metadata deploys the demo after it is ready. Attempts to sign in cost time.
    for (const end = Date.now() + 60_000; ; await pause(1_000)) {
      const found = await samSignsIn().catch((error: Error) => error);
      if (!(found instanceof Error)) {
        sam = found;
        break;
      }
      if (Date.now() > end) throw found;
    }
    const created = await sam.post('/data/Account', { name: 'Before the upgrade' });
    assert.equal(created.status, 201, created.text);
    record = created.body;
  });

  it('stores and reads files without further settings', async () => {
    const { fileId } = await store(sam, 'in the volume');
    assert.equal((await sam.get(`/files/${fileId}/content`)).text, 'in the volume');
    assert.ok(readdirSync(join(installation.folder, 'volumes/contents')).length > 0);
  });

  it('provides the console, and commands that read whole tenants', async () => {
    const printed = await run('docker-compose 2', 'health\n');
    for (const service of ALL_SERVICES)
      assert.match(printed, new RegExp(`\\b${service}/.* \\(${service}\\): ready$`, 'm'));
    assert.match(printed, /^demo +\S+ +active /m);
    const { size } = statSync(join(installation.folder, 'demo.tar.gz'));
    assert.ok(size > 100_000, `${size} bytes`);
  });

  it('can be upgraded while the keys of the bus are replaced', async () => {
    assert.match(await run('keys-of-the-bus'), /^New or changed in this run: nats\.$/m);
    assert.match(await run('keys-of-the-bus 2'), /New or changed in this run: nats, gateway, /);
    const pids = (): (number | undefined)[] =>
      [...ALL_SERVICES, 'nats', 'postgres'].map((name) => installation.pid(name));
    const before = pids();
    assert.match(
      await run('upgrade-with-docker-compose'),
      /The database is up to date\.\n[\s\S]*The database is up to date\.\n/,
    );
    const changed = pids().map((pid, i) => pid !== before[i]);
    assert.deepEqual(changed, [...ALL_SERVICES.map(() => true), false, false]);
    const [reload] = /^.*reload.*$/m.exec(exampleNamed(`${PAGE}#upgrade-with-docker-compose`))!;
    await installation.shell(`npm run bus-keys -- --finish\n${reload}`);
    await until('all see each other', complete, 20_000);
    sam = await samSignsIn();
    const { status, body } = await sam.get(`/data/Account/${record.id}`);
    assert.deepEqual([status, body.name], [200, record.name]);
  });
});
