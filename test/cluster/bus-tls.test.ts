/** How the bus connects: tls:// is kept to, both sides prove who they are, and what is wrong is in the log. */
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ExtendedKeyUsage, ExtendedKeyUsageExtension, X509Certificate, X509CertificateGenerator } from '@peculiar/x509';
import { ServiceBroker } from 'moleculer';
import { nkeys } from 'nats';
import { brokerOptions } from '../../config/broker.ts';
import { readConfig } from '../../config/env.ts';
import { busConnected } from '../../mixins/bus/connected.ts';
import { natsBus } from '../../mixins/bus/nats-bus.ts';
import { makeBusKeys } from '../../scripts/bus-keys.ts';
import { type NatsServer, OPEN_POLICY, startServer } from '../support/nats.ts';

describe('the connection to NATS', function () {
  this.timeout(30_000);
  let folder: string;
  const servers: NatsServer[] = [];
  const certificates = (): Record<string, string> => ({ NATS_CA_FILE: join(folder, 'data', 'ca.pem') });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'erp-bus-tls-'));
    await makeBusKeys({ folder, hosts: ['127.0.0.1'] });
    await makeBusKeys({ folder: join(folder, 'other'), hosts: ['127.0.0.1'] });
    await makeBusKeys({ folder: join(folder, 'elsewhere'), hosts: ['localhost', '127.0.0.2'] });
    // The same authority as `folder`, and the certificate of another host.
    for (const name of ['ca.pem', 'ca.key'])
      await copyFile(join(folder, 'authority', name), join(folder, 'elsewhere', 'authority', name));
    await makeBusKeys({ folder: join(folder, 'elsewhere'), hosts: ['localhost', '127.0.0.2'] });
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** A server with this configuration and the certificate of `below`. */
  const serve = async (configuration: string, below = folder): Promise<NatsServer> => {
    await writeFile(join(below, 'nats', 'test.conf'), configuration);
    const server = await startServer({
      scheme: 'tls',
      folder: join(below, 'nats'),
      arguments: ['--config', 'test.conf'],
    });
    servers.push(server);
    return server;
  };
  const TLS = 'tls { cert_file: "server.pem", key_file: "server.key" }';

  /** Null when a process with these settings joined; otherwise what its log says. */
  const refusal = async (env: Record<string, string>): Promise<string | null> => {
    const config = readConfig({ SERVICES: 'data', LOG_LEVEL: 'warn', ...env });
    let told = '';
    const noted = (level: string) => (message: unknown) => {
      if (level === 'warn') told ||= String(message);
    };
    const logger = { trace: noted(''), debug: noted(''), info: noted(''), warn: noted('warn'), error: noted('error') };
    const bus = natsBus(config, OPEN_POLICY);
    const broker = new ServiceBroker({ ...brokerOptions(config), transporter: bus, logger: false });
    Object.assign(bus, { logger });
    const joining = broker.start();
    try {
      for (let i = 0; i < 160 && !told; i++) {
        if ((bus as unknown as { linked: boolean }).linked) return null;
        await pause(50);
      }
      return told;
    } finally {
      await bus.disconnect();
      void joining;
    }
  };

  it('is encrypted with a server that offers it without asking for it, also for nats:// with a TLS file', async () => {
    const { url } = await serve(`${TLS}\nallow_non_tls: true`);
    assert.equal(await refusal({ NATS_URL: url, ...certificates() }), null);
    assert.equal(await refusal({ NATS_URL: url.replace('tls:', 'nats:'), ...certificates() }), null);
  });

  for (const scheme of ['tls', 'nats'])
    it(`${scheme}:// with TLS never sends a byte to a server that offers none`, async () => {
      let received = '';
      const info = { server_id: 'X', version: '2.10.0', proto: 1, max_payload: 1_048_576, headers: true };
      const plain = createServer((socket) => {
        socket.on('data', (data) => (received += data));
        socket.on('error', () => {});
        socket.write(`INFO ${JSON.stringify(info)}\r\n`);
      });
      await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
      const { port } = plain.address() as AddressInfo;
      const url = `${scheme}://erp:hunter2@127.0.0.1:${port}`;
      assert.match((await refusal({ NATS_URL: url, ...certificates() }))!, /offers no TLS/);
      assert.equal(received, '');
      plain.close();
    });

  it('refuses a server of another authority', async () => {
    const { url } = await serve(TLS, join(folder, 'other'));
    assert.match((await refusal({ NATS_URL: url, ...certificates() }))!, /certificate .* NATS_CA_FILE names\.$/);
    assert.match((await refusal({ NATS_URL: url }))!, /certificate/, 'the authorities of Node.js did not sign it');
  });

  it('refuses a server with a certificate for another host, by name and by address', async () => {
    const { url } = await serve(TLS, join(folder, 'elsewhere'));
    assert.match((await refusal({ NATS_URL: url, ...certificates() }))!, /does not match|not in the cert/);
    const byName = url.replace('127.0.0.1', 'localhost');
    assert.equal(await refusal({ NATS_URL: byName, ...certificates() }), null);
    const here = await serve(TLS);
    const wrongName = here.url.replace('127.0.0.1', 'localhost');
    assert.match((await refusal({ NATS_URL: wrongName, ...certificates() }))!, /does not match/);
  });

  it('shows a client certificate where the server asks for one', async () => {
    const { url } = await serve(TLS.replace('}', ', ca_file: "../authority/ca.pem", verify: true }'));
    const client = await clientCertificate();
    assert.equal(await refusal({ NATS_URL: url, ...certificates(), ...client }), null);
    assert.match((await refusal({ NATS_URL: url, ...certificates() }))!, /client certificate/);
  });

  /** A certificate of the authority, and its key. */
  async function clientCertificate(): Promise<Record<string, string>> {
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const authority = createPrivateKey(await readFile(join(folder, 'authority', 'ca.key')));
    const der = authority.export({ format: 'der', type: 'pkcs8' });
    const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const certificate = await X509CertificateGenerator.create({
      subject: 'CN=data',
      issuer: new X509Certificate(await readFile(join(folder, 'authority', 'ca.pem'), 'utf8')).subject,
      publicKey: keys.publicKey,
      signingKey: await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']),
      signingAlgorithm: algorithm,
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])],
    });
    const files = { NATS_CERT_FILE: join(folder, 'client.pem'), NATS_KEY_FILE: join(folder, 'client.key') };
    await writeFile(files.NATS_CERT_FILE, certificate.toString('pem'));
    const key = createPrivateKey({
      key: Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)),
      format: 'der',
      type: 'pkcs8',
    });
    await writeFile(files.NATS_KEY_FILE, key.export({ format: 'pem', type: 'pkcs8' }));
    return files;
  }

  it('signs in with an unescaped password, from the address and from a file', async () => {
    const password = 'p/a:s%s@word';
    const { url } = await serve(`${TLS}\nauthorization { user: "erp@bus", password: ${JSON.stringify(password)} }`);
    const inUrl = (text: string): string => url.replace('//', `//erp%40bus:${encodeURIComponent(text)}@`);
    assert.equal(await refusal({ NATS_URL: inUrl(password), ...certificates() }), null);
    const said = (await refusal({ NATS_URL: inUrl('hunter2'), ...certificates() }))!;
    assert.match(said, /refuses the credentials/);
    assert.doesNotMatch(said, /hunter2/);
    const file = join(folder, 'password');
    await writeFile(file, `${password}\n`);
    const env = { NATS_URL: url, NATS_USER: 'erp@bus', NATS_PASSWORD_FILE: file, ...certificates() };
    assert.equal(await refusal(env), null);
  });

  it('signs in with an nkey, and is refused with another one', async () => {
    const user = nkeys.createUser();
    const { url } = await serve(`${TLS}\nauthorization { users: [{ nkey: ${user.getPublicKey()} }] }`);
    const seed = join(folder, 'seed.nk');
    await writeFile(seed, `${Buffer.from(user.getSeed())}\n`);
    assert.equal(await refusal({ NATS_URL: url, NATS_NKEY_FILE: seed, ...certificates() }), null);
    const other = join(folder, 'data', 'user.nk');
    const said = await refusal({ NATS_URL: url, NATS_NKEY_FILE: other, ...certificates() });
    assert.match(said!, /refuses the credentials/);
  });

  it('is refused with the seed of another identity', async () => {
    const configuration = await readFile(join(folder, 'nats', 'nats.conf'), 'utf8');
    const { url } = await serve(configuration);
    const seed = join(folder, 'auth', 'user.nk');
    const config = readConfig({ SERVICES: 'data', NATS_URL: url, NATS_NKEY_FILE: seed, ...certificates() });
    const bus = natsBus(config, OPEN_POLICY);
    const broker = new ServiceBroker({ ...brokerOptions(config), transporter: bus, logger: false });
    await broker.start();
    try {
      for (let i = 0; busConnected(broker) && i < 100; i++) await pause(50);
      assert.equal(busConnected(broker), false);
      assert.match(bus.trouble!, /may not send or hear as data: the seed in .*auth\/user\.nk/);
    } finally {
      await broker.stop();
    }
  });

  it('that fails ends a command with the reason after ten seconds', async () => {
    const { url } = await serve(`${TLS}\nauthorization { user: a, password: b }`);
    const seed = join(folder, 'operator', 'user.nk');
    const env = { PATH: process.env['PATH']!, NATS_URL: url, NATS_NKEY_FILE: seed, ...certificates() };
    const ended = promisify(execFile)(process.execPath, ['scripts/rotate-secret.ts'], { env });
    await assert.rejects(ended, (error: { code: number; stderr: string }) => {
      assert.match(error.stderr, /No process could be joined within 10 s: the server refuses the credentials/);
      return error.code === 1;
    });
  });

  it('signs in with a credentials file: its token, and the nonce signed with its seed', async () => {
    const user = nkeys.createUser();
    const nonce = 'mSxZ5kQJ7v8nKf0';
    const file = join(folder, 'user.creds');
    await writeFile(
      file,
      `-----BEGIN NATS USER JWT-----\nhead.body.signature\n------END NATS USER JWT------\n\n` +
        `-----BEGIN USER NKEY SEED-----\n${Buffer.from(user.getSeed())}\n------END USER NKEY SEED------\n`,
    );
    let received = '';
    const info = { server_id: 'X', version: '2.10.0', proto: 1, max_payload: 1_048_576, auth_required: true, nonce };
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        received += data;
        socket.end("-ERR 'Authorization Violation'\r\n");
      });
      socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await refusal({ NATS_URL: `nats://127.0.0.1:${port}`, NATS_CREDS_FILE: file });
    server.close();
    const { jwt, sig } = JSON.parse(/^CONNECT (.*)\r\n/m.exec(received)![1]!);
    assert.equal(jwt, 'head.body.signature');
    assert.equal(user.verify(new TextEncoder().encode(nonce), Buffer.from(sig, 'base64url')), true);
  });

  it('uses the next server when one is unavailable', async () => {
    const { url } = await serve(TLS);
    assert.equal(await refusal({ NATS_URL: `tls://127.0.0.1:1,${url}`, ...certificates() }), null);
  });
});
