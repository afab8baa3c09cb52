/** The certificates of a process and of its servers, as docs/reference/operations-cluster.md#certificates says. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import type { BusConfig } from '../../config/bus.ts';
import { certificateFiles } from '../../config/certificates.ts';
import type { Config } from '../../config/env.ts';
import { natsBus } from '../../mixins/bus/nats-bus.ts';
import { CertificateExpiries, type CertificateSources } from '../../mixins/certificate-expiry.ts';
import { Database } from '../../mixins/database/database.ts';
import { Metrics } from '../../mixins/metrics/metrics.ts';
import { selfSigned } from '../support/certificates.ts';
import { OPEN_POLICY, startServer } from '../support/nats.ts';
import { Servers } from '../support/postgres.ts';

const DAY_MS = 86_400_000;
/** Certificates know whole seconds. */
const begin = Math.floor(Date.now() / 1_000) * 1_000;
const inDays = (days: number): Date => new Date(begin + days * DAY_MS);

/** Asserts again and again until it holds, for ten seconds at most. */
async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  for (const end = performance.now() + 10_000; ; await pause(50)) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
  }
}

describe('certificates of a process', () => {
  let folder: string;
  const watched: CertificateExpiries[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'erp-certificates-'));
  });
  afterEach(() => {
    for (const one of watched.splice(0)) one.stop();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (name: string, ...texts: string[]): string => {
    writeFileSync(join(folder, name), `${texts.join('\n')}\n`);
    return join(folder, name);
  };
  const watch = (sources: Partial<CertificateSources>, everyMs?: number) => {
    const warnings: string[] = [];
    const metrics = new Metrics();
    const expiries = new CertificateExpiries(
      { files: [], servers: new Map(), ...sources },
      (message) => warnings.push(message),
      everyMs,
    );
    watched.push(expiries);
    expiries.register(metrics);
    const dates = async (): Promise<Record<string, Date>> =>
      Object.fromEntries(
        [...(await metrics.text()).matchAll(/\{setting="(\w+)",kind="(\w+)"\} (\S+)$/gm)].map(
          ([, setting, kind, seconds]) => [`${setting} ${kind}`, new Date(Number(seconds) * 1_000)],
        ),
      );
    return { dates, warnings };
  };

  it('are read from the configured files', () => {
    const found = certificateFiles(
      { NATS_CA_FILE: '/bus/ca.pem', NATS_CERT_FILE: '/bus/client.pem', SMTP_CA_FILE: '' },
      { DATABASE_URL: 'postgres://db/erp?sslmode=verify-full&sslrootcert=/db/ca.crt&sslcert=/db/client.crt' },
    );
    assert.deepEqual(
      found.map(({ setting, kind, path }) => `${setting} ${kind} ${path}`),
      [
        'NATS_CA_FILE authority /bus/ca.pem',
        'NATS_CERT_FILE own /bus/client.pem',
        'DATABASE_URL authority /db/ca.crt',
        'DATABASE_URL own /db/client.crt',
      ],
    );
  });

  it('are read again when their file changes, and reported once a day from 21 days before their end', async () => {
    const [old, present] = [await selfSigned('ca', inDays(5)), await selfSigned('ca', inDays(100))];
    const path = file('own.pem', (await selfSigned('client', inDays(20))).cert, present.cert);
    const { dates, warnings } = watch(
      {
        files: [
          { setting: 'NATS_CERT_FILE', kind: 'own', path },
          { setting: 'NATS_CA_FILE', kind: 'authority', path: file('ca.pem', old.cert, present.cert) },
          { setting: 'SMTP_CA_FILE', kind: 'authority', path: join(folder, 'nowhere.pem') },
        ],
      },
      20,
    );
    assert.deepEqual(await dates(), { 'NATS_CERT_FILE own': inDays(20), 'NATS_CA_FILE authority': inDays(100) });
    await pause(100);
    assert.equal(warnings.length, 1, warnings.join('\n'));
    assert.match(warnings[0]!, /^The certificate of NATS_CERT_FILE \(own\) expires in (19|20) days, at 20\d\d-\S+Z: /);
    file('own.pem', (await selfSigned('client', inDays(200))).cert);
    assert.deepEqual((await dates())['NATS_CERT_FILE own'], inDays(200));
    await pause(50);
    file('own.pem', (await selfSigned('client', inDays(-3))).cert);
    await eventually(() => assert.equal(warnings.length, 2));
    assert.match(warnings[1]!, /^The certificate of NATS_CERT_FILE \(own\) expired [23] days ago, at /);
  });

  it('include that of NATS, also when it is renewed while the connection stands', async function () {
    this.timeout(30_000);
    const write = async (expiresAt: Date): Promise<void> => {
      const { cert, key } = await selfSigned('localhost', expiresAt);
      file('server.pem', cert);
      file('server.key', key);
      // The process trusts it as an authority.
      file('bus-ca.pem', cert);
    };
    await write(inDays(10));
    const pidFile = join(folder, 'nats.pid');
    const configuration = file(
      'nats.conf',
      `tls { cert_file: "${join(folder, 'server.pem')}", key_file: "${join(folder, 'server.key')}" }`,
    );
    const nats = await startServer({ scheme: 'tls', arguments: ['--config', configuration, '--pid', pidFile] });
    const bus: BusConfig = {
      servers: [nats.url.replace('tls://127.0.0.1', 'localhost')],
      tls: { caFile: join(folder, 'bus-ca.pem') },
      login: null,
      identity: 'data',
      contextKeys: null,
    };
    const transporter = natsBus({ bus } as Config, OPEN_POLICY);
    const broker = new ServiceBroker({ nodeID: 'data/test', logger: false, transporter });
    try {
      await broker.start();
      const { dates, warnings } = watch({ servers: new Map([['NATS_URL', transporter]]) }, 100);
      assert.deepEqual(await dates(), { 'NATS_URL server': inDays(10) });
      assert.equal(warnings.length, 1);
      await write(inDays(300));
      process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGHUP');
      await eventually(async () => assert.deepEqual(await dates(), { 'NATS_URL server': inDays(300) }));
      assert.ok(broker.transit?.connected);
    } finally {
      await broker.stop();
      await nats.stop();
    }
  });

  it('include that of PostgreSQL where it is verified, also when it is renewed while connections stand', async function () {
    this.timeout(60_000);
    const servers = new Servers();
    const certificate = await selfSigned('localhost', inDays(10));
    const settings = ['ssl=on', 'ssl_cert_file=server.crt', 'ssl_key_file=server.key'];
    let data = '';
    try {
      const server = await servers.create('server', settings, (place) => {
        data = place;
        servers.write(join(place, 'server.crt'), certificate.cert);
        servers.write(join(place, 'server.key'), certificate.key);
      });
      const url = (more: string): string => `${server.url('postgres').replace('127.0.0.1', 'localhost')}?${more}`;
      const authority = file('pg-ca.pem', certificate.cert);
      const verified = new Database(url(`sslmode=verify-full&sslrootcert=${authority}`), {
        size: 1,
        applicationName: 'certificates',
      });
      const plain = new Database(url('sslmode=disable'), { size: 1, applicationName: 'certificates' });
      try {
        for (const database of [verified, plain]) await database.query('SELECT 1');
        const { dates } = watch(
          {
            servers: new Map([
              ['DATABASE_URL_DATA', verified],
              ['DATABASE_URL', plain],
            ]),
          },
          100,
        );
        assert.deepEqual(await dates(), { 'DATABASE_URL_DATA server': inDays(10) });
        const renewed = await selfSigned('localhost', inDays(300));
        file('pg-ca.pem', renewed.cert);
        servers.write(join(data, 'server.crt'), renewed.cert);
        servers.write(join(data, 'server.key'), renewed.key);
        await plain.query('SELECT pg_reload_conf()');
        await eventually(async () => assert.deepEqual(await dates(), { 'DATABASE_URL_DATA server': inDays(300) }));
      } finally {
        await Promise.all([verified.close(), plain.close()]);
      }
    } finally {
      await servers.stop();
    }
  });
});
