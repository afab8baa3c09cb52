/** A real nats-server on a free port; stop() and start() again on the same port play an outage. */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { OPERATOR } from '../../config/services.ts';
import type { BusPolicy } from '../../mixins/bus/policy.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { makeBusKeys } from '../../scripts/bus-keys.ts';
import { processStarted, processStopped } from './processes.ts';

/** For tests with services of their own: every user may do everything. */
export const OPEN_POLICY: BusPolicy = {
  mayCall: () => true,
  maySend: () => true,
  mayHear: () => true,
  mayActForUsers: () => true,
  validMs: () => 30_000,
  longestCallMs: 30_000,
};

export interface NatsServer {
  readonly url: string;
  /** Environment of a process that joins with this identity, such as `data` or `operator`. */
  environment(identity: string): Record<string, string>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

/** How a server is started: with what it has on its command line, and in which folder. */
interface Setup {
  readonly scheme?: 'nats' | 'tls';
  readonly folder?: string;
  readonly arguments?: readonly string[];
  environment?(identity: string): Record<string, string>;
}

/** Starts the nats-server of the PATH (Debian: package nats-server), without TLS or sign-in. */
export const startNats = (): Promise<NatsServer> => startServer({});

/** The same with TLS and a user per identity, as `npm run bus-keys` sets it up. */
export async function startSecureNats(identities: readonly string[] = []): Promise<NatsServer & { folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'erp-bus-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await makeBusKeys({ folder, hosts: ['127.0.0.1'], identities });
  const server = await startServer({
    scheme: 'tls',
    folder: join(folder, 'nats'),
    arguments: ['--config', 'nats.conf'],
    environment: (identity) => ({
      NATS_CA_FILE: join(folder, identity, 'ca.pem'),
      NATS_NKEY_FILE: join(folder, identity, 'user.nk'),
      ...(identity === OPERATOR ? {} : { BUS_KEYS_FILE: join(folder, identity, 'context.keys') }),
    }),
  });
  return { ...server, folder };
}

/** A server with options of its own. */
export async function startServer(setup: Setup): Promise<NatsServer> {
  const port = await freePort();
  const url = `${setup.scheme ?? 'nats'}://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const server: NatsServer = {
    url,
    environment: (identity) => ({ NATS_URL: url, ...setup.environment?.(identity) }),
    async start() {
      const path = `${process.env['PATH']}:/usr/sbin:/usr/local/sbin`;
      child = spawn('nats-server', ['--addr', '127.0.0.1', '--port', String(port), ...(setup.arguments ?? [])], {
        ...(setup.folder ? { cwd: setup.folder } : {}),
        stdio: 'ignore',
        env: { ...process.env, PATH: path },
      });
      let failure: Error | undefined;
      child.once('error', (error) => (failure = error));
      processStarted(child, 'nats-server');
      for (let i = 0; !(await accepts(port)); i++) {
        if (failure) throw new Error('nats-server is not on the PATH: install it (Debian: apt install nats-server).');
        if (i === 100) throw new Error(`nats-server does not answer on port ${port}.`);
        await pause(50);
      }
    },
    async stop() {
      if (!child) return;
      const gone = new Promise((resolve) => child!.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
      processStopped(child);
      child = undefined;
    },
  };
  await server.start();
  return server;
}
