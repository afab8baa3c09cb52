/** A real nats-server on a free port; stop() and start() again on the same port play an outage. */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { BusPolicy } from '../../mixins/bus/policy.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { processStarted, processStopped } from './processes.ts';

/** For tests with services of their own: everybody may do everything. */
export const OPEN_POLICY: BusPolicy = {
  mayCall: () => true,
  maySend: () => true,
  mayHear: () => true,
  mayActForUsers: () => true,
};

export interface NatsServer {
  readonly url: string;
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

/** Starts the nats-server of the PATH (Debian: package nats-server). */
export async function startNats(): Promise<NatsServer> {
  const port = await freePort();
  let child: ChildProcess | undefined;
  const server: NatsServer = {
    url: `nats://127.0.0.1:${port}`,
    async start() {
      const path = `${process.env['PATH']}:/usr/sbin:/usr/local/sbin`;
      child = spawn('nats-server', ['--addr', '127.0.0.1', '--port', String(port)], {
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
