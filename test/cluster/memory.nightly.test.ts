/** Resident memory of processes that have just started and answered some requests. Source: docs/scaling.md. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';

const ALL_IN_ONE_MIB = 235;
const ONE_SERVICE_MIB = 135;
/** Auth hashes a password for the sign-in, in 19 MiB; the others do not collect their heap before they are ready. */
const OWN_MIB: Readonly<Partial<Record<ServiceName, number>>> = { auth: 160, gateway: 160, data: 150, metadata: 150 };

const residentMib = ({ pid }: ServiceProcess): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

async function useIt(baseUrl: string): Promise<void> {
  const sam = api(baseUrl, await tokenFor(baseUrl, 'sam@demo.example'));
  for (const path of ['/data/Account?take=50', '/objects', '/analytics/dashboards', '/me/limits'])
    assert.equal((await sam.get(path)).status, 200, path);
}

describe('memory of processes', function () {
  this.timeout(300_000);
  let database: TestDatabase;
  let nats: NatsServer;
  let processes: ServiceProcess[] = [];
  before(async function () {
    if (!existsSync('/proc/self/status')) this.skip();
    [database, nats] = await Promise.all([createPlatformDatabase(), startNats()]);
  });
  const stopAll = async (): Promise<void> => {
    await Promise.all(processes.splice(0).map((process) => process.stop()));
  };
  afterEach(stopAll);
  after(async () => {
    await nats?.stop();
    await database?.drop();
  });

  /** Twice: what strips types is not loaded when the modules are in the compile cache. */
  const startEach = async (roles: readonly (readonly ServiceName[])[]): Promise<string> => {
    for (const _ of ['filling the cache', 'measured']) {
      await stopAll();
      processes = await Promise.all(
        roles.map((services) => startProcess({ services, databaseUrl: database.url, natsUrl: nats.url })),
      );
    }
    return processes.find(({ baseUrl }) => baseUrl !== '')!.baseUrl;
  };

  it(`stays below ${ALL_IN_ONE_MIB} MiB in one process of all services`, async () => {
    await useIt(await startEach([ALL_SERVICES]));
    const used = residentMib(processes[0]!);
    assert.ok(used < ALL_IN_ONE_MIB, `${used.toFixed(0)} MiB`);
  });

  it(`stays below ${ONE_SERVICE_MIB} MiB in most processes of one service`, async () => {
    await useIt(await startEach(ALL_SERVICES.map((service) => [service])));
    const used = processes.map((process) => [process.services[0], Math.round(residentMib(process))] as const);
    assert.deepEqual(
      used.filter(([service, mib]) => mib >= (OWN_MIB[service ?? 'auth'] ?? ONE_SERVICE_MIB)),
      [],
      JSON.stringify(used),
    );
  });
});
