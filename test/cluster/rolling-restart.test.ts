/**
 * Every process of a cluster replaced, one after the other, while callers go on: two of each, gateways behind a load
 * balancer that follows /readyz. ROLLING_PER_SECOND and ROLLING_APART=true make it the one of
 * docs/reference/operations-cluster.md: 200 requests a second, a process for each service.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { Balancer, Traffic } from './traffic.ts';

const PER_SECOND = Number(process.env['ROLLING_PER_SECOND'] ?? 40);
const PROBE_MS = 200;
/** What a gateway needs to find a new process, and another process to hear of it. */
const FOUND_MS = 1_000;
const ATTEMPTS_MAX = 3;
const TOGETHER: readonly (readonly ServiceName[])[] = [
  ['gateway'],
  ['data'],
  ['agent', 'analytics', 'auth', 'metadata', 'ratelimit'],
];
const GROUPS = process.env['ROLLING_APART'] === 'true' ? ALL_SERVICES.map((service) => [service]) : TOGETHER;

interface Member {
  readonly services: readonly ServiceName[];
  readonly process: ServiceProcess;
  /** 0: no gateway. */
  readonly port: number;
}

describe('a rolling restart under load', function () {
  this.timeout(600_000);
  let nats: NatsServer;
  let database: TestDatabase;
  let balancer: Balancer;
  let port: number;
  let members: Member[] = [];

  const startMember = async (services: readonly ServiceName[]): Promise<Member> => {
    const own = services.includes('gateway') ? await freePort() : 0;
    const started = await startProcess({
      services,
      databaseUrl: database.url,
      natsUrl: nats.url,
      patience: 120_000,
      env: {
        BASE_URL: `http://127.0.0.1:${port}`,
        SHUTDOWN_GRACE_SECONDS: services.includes('gateway') ? '2' : '0',
        ...(own ? { PORT: String(own) } : {}),
      },
    });
    if (own) await balancer.add(own);
    return { services, process: started, port: own };
  };

  before(async () => {
    [nats, database, port] = await Promise.all([startNats(), createPlatformDatabase(), freePort()]);
    balancer = new Balancer(port, PROBE_MS);
    members = await Promise.all(GROUPS.flatMap((services) => [startMember(services), startMember(services)]));
    await pause(FOUND_MS);
  });
  after(async () => {
    balancer?.close();
    await Promise.all(members.map(({ process: running }) => running.kill()));
    await nats?.stop();
    await database?.drop();
  });

  interface Outcome {
    readonly seconds: number;
    readonly traffic: Traffic;
    /** Processes that others took for lost while they ran. */
    readonly lost: readonly string[];
  }

  async function restartAll(): Promise<Outcome> {
    const traffic = new Traffic(port, await tokenFor(`http://127.0.0.1:${port}`, 'sam'));
    await traffic.start(PER_SECOND);
    const began = performance.now();
    const everybody = members.map((member) => member.process);
    for (const old of members) {
      const next = await startMember(old.services);
      everybody.push(next.process);
      members = members.map((member) => (member === old ? next : member));
      await pause(FOUND_MS);
      const stopping = performance.now();
      assert.equal(await old.process.stop(), 0, old.process.output());
      assert.ok(performance.now() - stopping < 10_000, `${old.services} ended in time`);
      if (old.port) balancer.remove(old.port);
    }
    const seconds = (performance.now() - began) / 1_000;
    await traffic.stop();
    const lost = everybody.flatMap((one) => one.output().match(/Node '[^']+' disconnected unexpectedly/g) ?? []);
    const { answered, failed } = traffic;
    if (process.env['ROLLING_PER_SECOND']) console.log({ seconds, answered, failed, lost });
    return { seconds, traffic, lost };
  }

  it('fails no request', async () => {
    // A machine that gives a process no processor for a second has the others take it for lost, whatever is restarted:
    // that says nothing about restarts.
    let outcome = await restartAll();
    for (let attempt = 2; attempt <= ATTEMPTS_MAX && outcome.lost.length > 0; attempt++) outcome = await restartAll();
    const { seconds, traffic, lost } = outcome;
    const { answered, failed, total } = traffic;
    assert.deepEqual(
      failed,
      {},
      `${total} were answered in ${seconds} s; taken for lost: ${lost.join('; ') || 'none'}`,
    );
    assert.ok(total > (seconds * PER_SECOND) / 2, `${total} requests in ${seconds} s`);
    for (const kind of ['list', 'get', 'create', 'update', 'dashboard', 'widget', 'sign-in'])
      assert.ok(answered[kind], kind);
  });
});
