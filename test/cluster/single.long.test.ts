/** The program as a newcomer starts it: one process, embedded PostgreSQL, a data folder that outlives everything. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from '../../config/broker.ts';
import { readConfig } from '../../config/env.ts';
import { connectToPlatform } from '../../mixins/control-socket.ts';
import { exampleNamed, examplesOf } from '../support/examples.ts';
import { startCollector } from '../support/otlp.ts';
import { compileCache, processStarted, processStopped } from '../support/processes.ts';
import { root } from '../support/sources.ts';
import { Terminal } from '../support/terminal.ts';

interface Started {
  child: ChildProcess;
  baseUrl: string;
}

/** The packages are here already, so they need not be fetched; all else is npm's. */
const NPM_CI = `npm() { if [ "$1" = ci ]; then ln -sfn "${join(root, 'node_modules')}" node_modules; else command npm "$@"; fi; }\n`;

describe('one process on its own database', function () {
  this.timeout(120_000);
  let folder: string;
  const terminals: Terminal[] = [];
  afterEach(() => Promise.all(terminals.splice(0).map((terminal) => terminal.end('SIGKILL'))));
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'erp-single-'));
  });
  after(async () => {
    const pid = await serverPid();
    if (pid) {
      process.kill(pid, 'SIGINT');
      await gone(pid);
    }
    await rm(folder, { recursive: true, force: true });
  });

  const launch = (env: Record<string, string> = {}): ChildProcess => {
    const child = spawn(process.execPath, ['main.ts'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: folder,
        PORT: '0',
        HOST: '127.0.0.1',
        LOG_LEVEL: 'warn',
        SEED_DEMO: 'false',
        ...compileCache(),
        ...env,
      },
    });
    processStarted(child, 'single');
    child.once('exit', () => processStopped(child));
    return child;
  };
  const ended = (child: ChildProcess): Promise<number | null> =>
    child.exitCode !== null || child.signalCode !== null
      ? Promise.resolve(child.exitCode)
      : new Promise((resolve) => child.once('exit', resolve));
  const start = async (): Promise<Started> => {
    const child = launch();
    let output = '';
    child.stderr!.on('data', (chunk) => (output += chunk));
    return new Promise((resolve, reject) => {
      child.stdout!.on('data', (chunk) => {
        output += chunk;
        const ready = /^ready (http\S+)/m.exec(output);
        if (ready) resolve({ child, baseUrl: ready[1]! });
      });
      child.once('exit', (code) => reject(new Error(`ended with ${code}:\n${output}`)));
    });
  };
  const serverPid = async (data = folder): Promise<number | null> => {
    const text = await readFile(join(data, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '');
    return Number(text.split('\n')[0]) || null;
  };
  const alive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };
  const gone = async (pid: number): Promise<void> => {
    for (let i = 0; alive(pid); i++) {
      if (i === 200) throw new Error(`Process ${pid} is still there.`);
      await pause(50);
    }
  };
  const isReady = async (baseUrl: string): Promise<boolean> =>
    (await fetch(`${baseUrl}/readyz`).catch(() => null))?.status === 200;

  it('stops on SIGTERM within ten seconds, its database with it', async () => {
    const { child, baseUrl } = await start();
    assert.equal(await isReady(baseUrl), true);
    const server = (await serverPid())!;
    const began = performance.now();
    child.kill('SIGTERM');
    assert.equal(await ended(child), 0);
    assert.ok(performance.now() - began < 10_000);
    assert.equal(alive(server), false);
  });

  it('starts, is inspected and ends with Ctrl-C as documented, in a folder without packages', async () => {
    const clone = await mkdtemp(join(tmpdir(), 'erp-clone-'));
    for (const name of await readdir(root))
      if (!/^(?:node_modules|\.git|\.data)$/.test(name)) await symlink(join(root, name), join(clone, name));
    const collector = await startCollector();
    const env = {
      PATH: process.env['PATH'],
      HOME: clone,
      PORT: '0',
      SEED_DEMO: 'false',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      ...compileCache(),
    };
    const terminal = (name: string, change = (text: string) => text): Terminal => {
      const opened = new Terminal(NPM_CI + change(exampleNamed(name)), { cwd: clone, env });
      terminals.push(opened);
      return opened;
    };
    const readyAt = async (platform: Terminal): Promise<string> => (await platform.until(/^ready (http\S+)$/))[0]![1]!;

    const first = terminal('docs/guides/operators.md#start-and-stop');
    const guide = examplesOf('docs/guides/first-request.md').find(({ text }) => text.includes('npm start'));
    assert.equal(guide?.text, exampleNamed('docs/guides/operators.md#start-and-stop'));
    assert.equal(await isReady(await readyAt(first)), true);
    const server = (await serverPid(join(clone, '.data')))!;
    assert.equal(alive(server), true);
    const console = terminal('docs/guides/operators.md#the-console');
    const lines = exampleNamed('docs/guides/operators.md#the-console 2').matchAll(/^erp \$ (.+)$/gm);
    console.type([...lines].map(([, line]) => `${line}\n`).join(''));
    assert.equal(await console.done(), 0, console.output);
    assert.match(console.output, /\(.*gateway.*\): ready\b[\s\S]* requests +\d[\s\S]*\nnull\n/);
    const began = performance.now();
    assert.equal(await first.end(), 0, first.output);
    assert.ok(performance.now() - began < 10_000);
    assert.equal(alive(server), false);

    const second = terminal('README.md#start');
    assert.equal(await isReady(await readyAt(second)), true);
    assert.equal(await second.end(), 0, second.output);

    const traced = terminal('docs/reference/tracing.md#tracing', (text) =>
      text.replace('http://collector.internal:4318', collector.url),
    );
    await fetch(`${await readyAt(traced)}/api/v1/capabilities`);
    assert.equal(await traced.end(), 0, traced.output);
    assert.ok(collector.spans.some(({ attributes }) => attributes['erp.operation_id'] !== undefined));
    await collector.stop();
    await rm(clone, { recursive: true, force: true });
  });

  for (const afterMs of [1_000, 3_000, 6_000])
    it(`stops on SIGTERM ${afterMs} ms after its start, its database with it`, async () => {
      const other = await mkdtemp(join(tmpdir(), 'erp-single-stopped-'));
      const child = launch({ DATA_DIR: other });
      await pause(afterMs);
      const began = performance.now();
      child.kill('SIGTERM');
      // Before the first line of the program runs, the signal itself is the end.
      assert.ok([0, null].includes(await ended(child)), `${child.exitCode} ${child.signalCode}`);
      assert.ok(performance.now() - began < 10_000);
      const pid = Number(
        (await readFile(join(other, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '0')).split('\n')[0],
      );
      assert.ok(!pid || !alive(pid), 'no server of the database is left');
      await rm(other, { recursive: true, force: true });
    });

  it('prints its steps with times and then the address on a terminal, and JSON when configured', async () => {
    const atTerminal = async (env: string): Promise<string> => {
      const command = `env ${env} '${process.execPath}' main.ts`;
      const settings = { DATA_DIR: folder, PORT: '0', HOST: '127.0.0.1', SEED_DEMO: 'false' };
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        cwd: root,
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { PATH: process.env['PATH'], ...settings, ...compileCache() },
      });
      processStarted(child, 'terminal');
      child.once('exit', () => processStopped(child));
      let output = '';
      child.stdout.on('data', (chunk) => {
        const wasReady = /^ready http/m.test(output);
        output += chunk;
        if (!wasReady && /^ready http/m.test(output)) child.stdin.write('\x03');
      });
      await ended(child);
      return output.replaceAll('\r', '');
    };
    const text = await atTerminal('LOG_LEVEL=');
    assert.match(
      text,
      /^ERP platform .*\n {2}database +[\d.]+ s\n {2}migrations +[\d.]+ s\n {2}services +[\d.]+ s\nready http:\/\/\S+$/m,
    );
    assert.doesNotMatch(text, /^\{/m);
    const json = await atTerminal('LOG_FORMAT=json');
    assert.match(json, /^\{"level":30,/m);
    assert.match(json, /^ready http:\/\/\S+$/m);
  });

  it('is not affected by a second start, which explains the error in one sentence', async () => {
    const first = await start();
    const second = launch();
    let said = '';
    second.stderr!.on('data', (chunk) => (said += chunk));
    assert.equal(await ended(second), 1);
    assert.match(said, new RegExp(`^Another instance \\(process ${first.child.pid}\\) already runs on .*\\n$`));
    assert.equal(await isReady(first.baseUrl), true);
    first.child.kill();
    assert.equal(await ended(first.child), 0);
  });

  const mistakes: [what: string, env: () => Record<string, string>, says: RegExp][] = [
    ['a wrong setting', () => ({ PORT: 'web' }), /^PORT must be an integer from 0 to 65535, not "web"\.\n$/],
    ['a port that is taken', () => ({ PORT: String(taken) }), /^Port \d+ is in use: choose another one with PORT.*\n$/],
  ];
  let taken = 0;
  for (const [what, env, says] of mistakes)
    it(`states in one sentence the remedy for ${what}`, async () => {
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      taken = (other.address() as AddressInfo).port;
      const child = launch({ LOG_LEVEL: 'silent', ...env() });
      let said = '';
      child.stderr!.on('data', (chunk) => (said += chunk));
      assert.equal(await ended(child), 1);
      assert.match(said, says);
      other.close();
    });

  it('starts again on a folder whose process was killed', async () => {
    const killed = await start();
    killed.child.kill('SIGKILL');
    await ended(killed.child);
    const { child, baseUrl } = await start();
    assert.equal(await isReady(baseUrl), true);
    child.kill();
    assert.equal(await ended(child), 0);
  });

  it('starts again on a folder whose process and database were killed', async () => {
    const killed = await start();
    const server = (await serverPid())!;
    killed.child.kill('SIGKILL');
    process.kill(server, 'SIGKILL');
    await Promise.all([ended(killed.child), gone(server)]);
    const { child, baseUrl } = await start();
    assert.equal(await isReady(baseUrl), true);
    child.kill();
    assert.equal(await ended(child), 0);
  });

  it('starts its database again when only that was killed', async () => {
    const { child, baseUrl } = await start();
    const server = (await serverPid())!;
    process.kill(server, 'SIGKILL');
    await gone(server);
    for (let i = 0; !(await isReady(baseUrl)); i++) {
      if (i === 200) throw new Error('The database did not come back.');
      await pause(50);
    }
    assert.notEqual(await serverPid(), server);
    child.kill();
    assert.equal(await ended(child), 0);
  });

  it('lets only an operator attach over the control socket', async () => {
    const { child } = await start();
    let closed = false;
    const control = await connectToPlatform(folder, () => {
      closed = true;
    });
    assert.ok(control);
    const config = readConfig({ NODE_ID: 'operator', LOG_LEVEL: 'silent' });
    const operator = new ServiceBroker({ ...brokerOptions(config), transporter: control.transporter });
    await operator.start();
    await operator.waitForServices('metadata', 5_000, 50);
    assert.deepEqual(await operator.call('metadata.tenants.list', {}), []);
    child.kill();
    assert.equal(await ended(child), 0);
    assert.equal(closed, true);
    await operator.stop();
    await control.close();
    assert.equal(await connectToPlatform(folder, () => {}), null);
  });
});
