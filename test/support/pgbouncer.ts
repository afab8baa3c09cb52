/** PgBouncer in front of a database, with the lines that the operators' page prints. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../mixins/database/embedded.ts';
import { exampleNamed } from './examples.ts';
import { processStarted, processStopped } from './processes.ts';

const PAGE = 'docs/reference/operations-cluster.md#a-connection-pooler';
/** Debian's package puts it where only administrators look. */
const PATH = `${process.env['PATH']}:/usr/sbin`;
const STARTED_MS = 20_000;

export const hasPgBouncer = (): boolean =>
  spawnSync('pgbouncer', ['--version'], { stdio: 'ignore', env: { PATH } }).status === 0;

export interface PgBouncer {
  /** Address of the database by way of the pooler. */
  readonly url: string;
  stop(): Promise<void>;
}

/** `target`: the address of a superuser, as whom the pooler looks up passwords. `port`: a free one unless given. */
export async function startPgBouncer(target: string, mode = 'session', port?: number): Promise<PgBouncer> {
  port ??= await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'erp-pgbouncer-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const server = new URL(target);
  const user = decodeURIComponent(server.username);
  const users = file('userlist.txt', `"${user}" "${decodeURIComponent(server.password)}"\n`);
  const lines: readonly [printed: string, ours: string][] = [
    [
      'host=postgres.internal port=5432 dbname=erp',
      `host=${server.hostname} port=${server.port} dbname=${server.pathname.slice(1)}`,
    ],
    ['listen_addr = 0.0.0.0', 'listen_addr = 127.0.0.1\nunix_socket_dir ='],
    ['listen_port = 6432', `listen_port = ${port}`],
    ['pool_mode = session', `pool_mode = ${mode}`],
    ['auth_user = pgbouncer', `auth_user = ${user}`],
    ['/etc/pgbouncer/userlist.txt', users],
  ];
  let text = exampleNamed(PAGE);
  for (const [printed, ours] of lines) {
    if (!text.includes(printed)) throw new Error(`${PAGE} has no line ${printed}`);
    text = text.replace(printed, ours);
  }
  const settings = file('pgbouncer.ini', text);
  chmodSync(folder, 0o755);
  // It does not run as root.
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres']));
  const account = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : {};
  const child: ChildProcess = spawn('pgbouncer', [settings], {
    ...account,
    env: { PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  processStarted(child, 'pgbouncer');
  child.once('exit', () => processStopped(child));
  let said = '';
  child.stderr!.on('data', (chunk: Buffer) => (said += chunk));
  const listens = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  for (const began = performance.now(); !(await listens()); await pause(50))
    if (child.exitCode !== null || performance.now() - began > STARTED_MS)
      throw new Error(`PgBouncer did not start: ${said}`);
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  url.pathname = '/erp';
  return {
    url: url.href,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill('SIGTERM');
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
