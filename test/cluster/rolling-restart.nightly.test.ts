/**
 * Every process of a cluster replaced, one after the other, while callers go on: two of each, gateways behind a load
 * balancer that follows /readyz. ROLLING_PER_SECOND and ROLLING_APART=true make it the one of
 * docs/reference/operations-cluster.md: 200 requests a second, a process for each service. ROLLING_FROM, a checkout of
 * another release with its dependencies, makes it the upgrade from that release and the way back to it.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { forgetTokens, tokenFor } from '../support/client.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { root } from '../support/sources.ts';
import { Balancer, Traffic } from './traffic.ts';

const PER_SECOND = Number(process.env['ROLLING_PER_SECOND'] ?? 40);
const PROBE_MS = 200;
/** Time for a gateway to discover a new process, and for other processes to be informed. */
const FOUND_MS = 1_000;
const ATTEMPTS_MAX = 3;
const TOGETHER: readonly (readonly ServiceName[])[] = [
  ['gateway'],
  ['data'],
  ['agent', 'analytics', 'auth', 'metadata', 'ratelimit'],
];
const GROUPS = process.env['ROLLING_APART'] === 'true' ? ALL_SERVICES.map((service) => [service]) : TOGETHER;

/** The release that is there at first; this one where no other is named. */
const FROM = process.env['ROLLING_FROM'] ?? root;
/** A new process may be called by later ones. */
const UPGRADE_ORDER = (a: Member, b: Member): number => stepOf(a) - stepOf(b);
const stepOf = ({ services }: Member): number =>
  services.includes('gateway') ? 2 : services.includes('metadata') ? 0 : 1;

interface Member {
  readonly folder: string;
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
  let isOfFrom: (services: readonly ServiceName[]) => boolean;

  const startMember = async (services: readonly ServiceName[], folder: string): Promise<Member> => {
    const own = services.includes('gateway') ? await freePort() : 0;
    const started = await startProcess({
      services,
      databaseUrl: database.url,
      natsUrl: nats.url,
      patience: 120_000,
      folder,
      env: {
        BASE_URL: `http://127.0.0.1:${port}`,
        SHUTDOWN_GRACE_SECONDS: services.includes('gateway') ? '2' : '0',
        ...(own ? { PORT: String(own) } : {}),
      },
    });
    if (own) await balancer.add(own);
    return { folder, services, process: started, port: own };
  };

  before(async () => {
    const made = FROM === root ? createPlatformDatabase() : createDatabase();
    [nats, database, port] = await Promise.all([startNats(), made, freePort()]);
    balancer = new Balancer(port, PROBE_MS);
    const { ALL_SERVICES: known } = (await import(pathToFileURL(join(FROM, 'config', 'services.ts')).href)) as {
      ALL_SERVICES: readonly ServiceName[];
    };
    isOfFrom = (services) => services.every((service) => known.includes(service));
    const there = GROUPS.filter(isOfFrom);
    members = await Promise.all(
      there.flatMap((services) => [startMember(services, FROM), startMember(services, FROM)]),
    );
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

  async function replaceAll(folder: string, order: readonly Member[], first = async () => {}): Promise<Outcome> {
    forgetTokens(`http://127.0.0.1:${port}`);
    const traffic = new Traffic(port, await tokenFor(`http://127.0.0.1:${port}`, 'sam'));
    await traffic.start(PER_SECOND);
    const began = performance.now();
    const everybody = members.map((member) => member.process);
    await first();
    for (const old of order) {
      const next = await startMember(old.services, folder);
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

  function assertGood({ seconds, traffic, lost }: Outcome): void {
    const { answered, failed, total } = traffic;
    assert.deepEqual(
      failed,
      {},
      `${total} were answered in ${seconds} s; taken for lost: ${lost.join('; ') || 'none'}`,
    );
    assert.ok(total > (seconds * PER_SECOND) / 2, `${total} requests in ${seconds} s`);
    for (const kind of ['list', 'get', 'create', 'update', 'dashboard', 'widget', 'sign-in'])
      assert.ok(answered[kind], kind);
  }

  if (FROM === root) {
    it('fails no request', async () => {
      // A machine that gives a process no processor for a second has the others take it for lost, whatever is restarted:
      // that says nothing about restarts.
      let outcome = await replaceAll(root, members);
      for (let attempt = 2; attempt <= ATTEMPTS_MAX && outcome.lost.length > 0; attempt++)
        outcome = await replaceAll(root, members);
      assertGood(outcome);
    });
    return;
  }

  it('to this release fails no request', async () => {
    const migrated = async (): Promise<void> => {
      await promisify(execFile)(process.execPath, [join(root, 'scripts/migrate.ts')], {
        env: { ...process.env, DATABASE_URL: database.url },
      });
      const isThere = (services: readonly ServiceName[]): boolean =>
        members.some((member) => member.services[0] === services[0]);
      for (const services of GROUPS.filter((group) => !isThere(group)))
        members.push(await startMember(services, root), await startMember(services, root));
    };
    assertGood(await replaceAll(root, members.toSorted(UPGRADE_ORDER), migrated));
  });

  it('back to that release fails none either', async () => {
    const back = members.filter(({ services }) => isOfFrom(services));
    assertGood(await replaceAll(FROM, back.toSorted(UPGRADE_ORDER).reverse()));
  });
});
