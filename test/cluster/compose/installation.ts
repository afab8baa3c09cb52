/**
 * Runs docker-compose.yml without containers: a process for each, in the order and with the
 * environment, the files and the commands that the file gives it, at an address of its own that the others reach by its name. The
 * blocks of the pages run as printed; `docker` in their shell comes here. It shows nothing of what only an image and a kernel can:
 * what is in the image, its user, who may read a mounted file, limits, health checks of services, restarts.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { ALL_SERVICES, type ServiceName } from '../../../config/services.ts';
import { postgresPrograms } from '../../support/postgres.ts';
import {
  compileCache,
  processStarted,
  processStopped,
  type ServiceProcess,
  startProcess,
} from '../../support/processes.ts';
import { read, root } from '../../support/sources.ts';
import { runPrinted } from '../printed-shell.ts';

const HERE = join(root, 'test/cluster/compose');

/** The commands of the pages. */
const DOCKER = `docker() { "$NODE" "${HERE}/docker.ts" "$@"; }`;

interface Container {
  readonly image: string;
  readonly build?: string | { readonly target: string };
  readonly profiles?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly working_dir?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

interface Started {
  /** Of which build its image is. */
  readonly build: number;
  readonly pid: number;
  readonly process?: ServiceProcess;
  stop(): Promise<unknown>;
}

/** `${NAME}`, `${NAME:-default}` and `${NAME:?what is missing}`, which may stand in each other. */
function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  const innermost = /\$\{(\w+)(?::([-?])([^${}]*))?\}/;
  for (let found = innermost.exec(text); found; found = innermost.exec(text)) {
    const [whole, name = '', operator, rest = ''] = found;
    const value = variables[name] ?? '';
    if (value === '' && operator === '?') throw new Error(`required variable ${name} is missing a value: ${rest}`);
    text = text.replace(whole, () => value || (operator === '-' ? rest : ''));
  }
  return text;
}

/** Environment from the Dockerfile's last stage. */
const IMAGE: Readonly<Record<string, string>> = Object.fromEntries(
  [.../^ENV ([\s\S]*?[^\\])\n/m.exec(read('Dockerfile'))![1]!.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [
    name,
    value,
  ]),
);

export class Installation {
  /** The folder that the operator works in, with the files of the repository that the blocks name. */
  readonly folder = mkdtempSync(join(tmpdir(), 'erp-compose-'));
  readonly #addresses: Readonly<Record<string, string>>;
  readonly #running = new Map<string, Started>();
  readonly #all: ServiceProcess[] = [];
  readonly #published: Server[] = [];
  /** The operator's environment, in addition to `.env`. */
  readonly #variables: Readonly<Record<string, string>>;
  readonly #control = createHttpServer(async (req, res) => {
    let text = '';
    for await (const chunk of req) text += chunk;
    const answer = await this.#docker(JSON.parse(text)).catch((error: Error) => ({ error: error.message }));
    res.end(JSON.stringify(answer));
  });
  #build = 0;

  constructor(variables: Readonly<Record<string, string>>) {
    this.#variables = variables;
    const network = `127.${randomInt(1, 255)}.${randomInt(0, 255)}`;
    const names = Object.keys((parse(read('docker-compose.yml'), { merge: true }) as { services: object }).services);
    this.#addresses = Object.fromEntries(names.map((name, i) => [name, `${network}.${i + 2}`]));
    // For the user of PostgreSQL.
    chmodSync(this.folder, 0o755);
    copyFileSync(join(root, 'docker-compose.yml'), join(this.folder, 'docker-compose.yml'));
    symlinkSync(join(HERE, 'postgres.sh'), join(this.folder, 'docker-entrypoint.sh'));
    this.#control.listen(0, '127.0.0.1');
  }

  /** Runs a text of the pages in the folder; `input` is typed. Answers what it printed, stderr last. */
  shell(text: string, input = ''): Promise<string> {
    return runPrinted({
      functions: DOCKER,
      text,
      folder: this.folder,
      input,
      env: { COMPOSE_CONTROL: `http://127.0.0.1:${(this.#control.address() as AddressInfo).port}` },
    });
  }

  pid(name: string): number | undefined {
    return this.#running.get(name)?.pid;
  }

  /** Health address of a service's process. */
  health(service: ServiceName): string {
    return `http://${this.#addresses[service]}:${IMAGE['HEALTH_PORT']}`;
  }

  /** A variable of `.env`. */
  variable(name: string): string {
    return this.#known()[name] ?? '';
  }

  crashes(): string[] {
    return this.#all.flatMap((process) => process.crash() ?? []);
  }

  async end(): Promise<void> {
    const services = [...this.#running].filter(([, { process }]) => process);
    await Promise.all(services.map(([, { process }]) => process!.kill()));
    for (const name of ['nats', 'postgres']) await this.#running.get(name)?.stop();
    for (const server of this.#published) server.close();
    this.#control.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #known(): Record<string, string> {
    const file = join(this.folder, '.env');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
    const written = lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]);
    return { ...Object.fromEntries(written), ...this.#variables };
  }

  #containers(): Record<string, Container> {
    const file = parse(readFileSync(join(this.folder, 'docker-compose.yml'), 'utf8'), { merge: true });
    const known = this.#known();
    const through = (value: unknown): unknown => {
      if (typeof value === 'string') return interpolate(value, known);
      if (Array.isArray(value)) return value.map(through);
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, through(one)]));
    };
    return through(file.services) as Record<string, Container>;
  }

  async #docker([compose, ...given]: string[]): Promise<{ command?: Command }> {
    if (compose !== 'compose') throw new Error(`docker ${compose} is not here`);
    if (given[0] === '--profile') given.splice(0, 2);
    const [what, ...rest] = given;
    const options: string[] = [];
    const words = [...rest];
    while (words[0]?.startsWith('-')) if (options.push(words.shift()!) && options.at(-1) === '--user') words.shift();
    const [name = '', ...typed] = words;
    if (what === 'build' || options.includes('--build')) this.#build++;
    if (what === 'build') return {};
    if (what === 'up') {
      await this.#up(Object.entries(this.#containers()).flatMap(([one, { profiles }]) => (profiles ? [] : one)));
      return {};
    }
    const container = this.#containers()[name];
    if (!container) throw new Error(`no such service: ${name}`);
    if (what === 'run') {
      await this.#up(Object.keys(container.depends_on ?? {}));
      return { command: this.#command(name, container, typed) };
    }
    if (what === 'exec' && options.includes('-T')) {
      const { pid } = this.#running.get(name) ?? {};
      if (pid === undefined) throw new Error(`service "${name}" is not running`);
      // The process of a container is the first one in it.
      const { program, args, env, cwd } = this.#command(name, container, typed);
      return { command: { program, args: args.map((arg) => arg.replace(/=1$/, `=${pid}`)), env, cwd } };
    }
    throw new Error(`docker compose ${what} ${rest.join(' ')} is not here`);
  }

  /** Command of a container. Paths of mounts and of the image are mapped to this machine. */
  #command(name: string, container: Container, typed: readonly string[] = []): Command {
    const mounts = (container.volumes ?? []).map((volume): [string, string] => {
      const [source = '', path = ''] = volume.split(':');
      if (!source.startsWith('./')) mkdirSync(join(this.folder, 'volumes', source), { recursive: true });
      const folder = source.startsWith('./') ? join(this.folder, source) : join(this.folder, 'volumes', source);
      if (!existsSync(folder)) throw new Error(`${folder} is not there to be mounted`);
      return [path, folder];
    });
    const mounted = (text: string): string =>
      mounts.reduce((all, [path, folder]) => all.replaceAll(new RegExp(`${path}(?=[/\\s]|$)`, 'gm'), folder), text);
    const address = this.#addresses[name]!;
    const own = container.image.startsWith('erp-platform') ? IMAGE : {};
    const env = Object.entries({ ...own, ...container.environment }).map(([key, value]) => [
      key,
      mounted(String(value)),
    ]);
    const words = [...(container.entrypoint ?? []), ...(typed.length ? typed : (container.command ?? []))].map(mounted);
    const [first = '', ...args] = name === 'nats' && !typed.length ? ['nats-server', ...words] : words;
    const cwd = container.working_dir === undefined ? root : mounted(container.working_dir);
    return {
      program: { node: process.execPath, '/nats-server': 'nats-server' }[first] ?? first,
      args: name === 'nats' && !typed.length ? [...args, '--addr', address] : args,
      cwd,
      env: {
        // Before those of the machine: what an image has and a machine does not.
        PATH: [this.folder, postgresPrograms(), process.env['PATH'], '/usr/sbin'].join(delimiter),
        ...compileCache(),
        ...Object.fromEntries(env),
        ADDRESS: address,
        PGDATA: mounted('/var/lib/postgresql/18/docker'),
        ...(own === IMAGE ? { HOST: address, DATA_DIR: join(this.folder, 'data') } : {}),
        NODE_OPTIONS: `--import=${HERE}/hosts.ts`,
        COMPOSE_HOSTS: JSON.stringify(this.#addresses),
      },
    };
  }

  /** Starts what is not running or is of an older image, each after what it depends on. */
  async #up(names: readonly string[]): Promise<void> {
    const containers = this.#containers();
    const outdated = names.filter((name) => containers[name]!.build && this.#running.get(name)?.build !== this.#build);
    await Promise.all(outdated.map((name) => this.#running.get(name)?.stop()));
    const begun = new Map<string, Promise<void>>();
    const begin = (name: string): Promise<void> => {
      const known = begun.get(name) ?? this.#begin(name, containers[name]!, begin);
      begun.set(name, known);
      return known;
    };
    const ended = await Promise.allSettled(names.map(begin));
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }

  async #begin(name: string, container: Container, begin: (name: string) => Promise<void>): Promise<void> {
    await Promise.all(Object.keys(container.depends_on ?? {}).map(begin));
    if (this.#running.has(name)) return;
    const command = this.#command(name, container);
    const { program, args, env, cwd } = command;
    if (ALL_SERVICES.includes(name as ServiceName)) {
      const services = [name as ServiceName];
      const started = await startProcess({
        services,
        databaseUrl: '',
        natsUrl: '',
        patience: 60_000,
        production: true,
        env,
      });
      this.#all.push(started);
      for (const port of container.ports ?? []) await this.#publish(name, port);
      this.#keep(name, { pid: started.pid, process: started, stop: started.stop });
    } else if (name === 'migrate') {
      await promisify(execFile)(program, args, { env, cwd });
    } else {
      const log = openSync(this.#log(name), 'a');
      const child = spawn(program, args, { env, cwd, stdio: ['ignore', log, log] });
      closeSync(log);
      processStarted(child, name);
      this.#keep(name, { pid: child.pid!, stop: () => stopped(child) });
      await this.#healthy(name, container, child, command);
    }
  }

  #keep(name: string, started: Omit<Started, 'build'>): void {
    const stop = async (): Promise<unknown> => {
      this.#running.delete(name);
      return started.stop();
    };
    this.#running.set(name, { ...started, build: this.#build, stop });
  }

  /** Until its health check passes. */
  async #healthy(name: string, container: Container, child: ChildProcess, { env, cwd }: Command): Promise<void> {
    // NATS has none: it accepts when it has read what it is to do.
    const check = (container.healthcheck?.test[1] ?? 'exec 3<>/dev/tcp/127.0.0.1/4222').replace(
      '127.0.0.1',
      env['ADDRESS']!,
    );
    for (const end = Date.now() + 30_000; ; await pause(100)) {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${readFileSync(this.#log(name), 'utf8')}`);
      const passed = await promisify(execFile)('bash', ['-c', check], { env, cwd }).catch(() => null);
      if (passed) return;
      if (Date.now() > end) throw new Error(`${name} is not healthy`);
    }
  }

  #log = (name: string): string => join(this.folder, `${name}.log`);

  /** A port of this machine that leads to one of the container. */
  async #publish(name: string, ports: string): Promise<void> {
    const [port, inside] = ports.split(':').map(Number);
    if (this.#published.length) return;
    const server = createServer((caller) => {
      const there = connect(inside!, this.#addresses[name]);
      for (const socket of [caller, there]) socket.on('error', () => caller.destroy() && there.destroy());
      caller.pipe(there).pipe(caller);
    });
    await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve));
    this.#published.push(server);
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  processStopped(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGINT');
  await gone;
}
