/** The Dockerfile and docker-compose.yml name only what exists. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { databaseVariable, readConfig } from '../../../config/env.ts';
import { ALL_SERVICES, HEALTH_PORT, PUBLIC_PORT } from '../../../config/services.ts';
import { makeBusKeys } from '../../../scripts/bus-keys.ts';
import { composeFile } from '../../../scripts/manifests.ts';
import { exampleNamed } from '../../support/examples.ts';
import { BUCKET_VARIABLES, environmentVariables, importsOf, repositoryFiles } from '../../support/sources.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Container {
  image: string;
  build?: string | { context: string; target: string };
  command?: string[];
  restart?: string;
  environment?: Record<string, string>;
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: object;
}

describe('docker-compose.yml', () => {
  const file = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Container>;
    volumes: Record<string, unknown>;
  };
  const services = Object.entries(file.services);
  /** In the name of the owner. */
  const COMMANDS = new Set(['migrate', 'operator']);
  const ours = services.filter(([, container]) => container.image.startsWith('erp-platform'));

  it('runs one container per service, a migration, PostgreSQL and NATS, commands, and nothing else', () => {
    assert.deepEqual(
      Object.keys(file.services).sort(),
      [...ALL_SERVICES, 'bus-keys', 'migrate', 'nats', 'operator', 'postgres'].sort(),
    );
    for (const service of ALL_SERVICES) assert.equal(file.services[service]!.environment!['SERVICES'], service);
  });

  it('has the services that `npm run manifests` writes from the declarations of the services', () => {
    const text = read('docker-compose.yml');
    assert.equal(text, composeFile(text), 'run `npm run manifests`');
  });

  it('gets a password for each service from the documents', () => {
    for (const path of ['README.md', 'docs/reference/operations-cluster.md']) {
      const [, command = ''] = /for name in \$\(([^)]+)\); do/.exec(read(path)) ?? [];
      const names = execFileSync('sh', ['-c', command], { cwd: root, encoding: 'utf8' }).trim().split('\n');
      const wanted = ALL_SERVICES.map((service) => `DATABASE_PASSWORD_${service.toUpperCase()}`);
      assert.deepEqual(names.sort(), wanted.sort(), path);
    }
  });

  it('starts with the same commands in the README, which publishes the demo password', () => {
    const known = (text: string): string => text.replace(/^(DEMO_PASSWORD)=.*$/m, '$1=demo-password');
    assert.equal(
      exampleNamed('README.md#where-to-go-on'),
      known(exampleNamed('docs/reference/operations-cluster.md#docker-compose')),
    );
  });

  it('sets each login’s password in the migration to the one that its service uses', () => {
    const { migrate } = file.services;
    for (const service of ALL_SERVICES)
      assert.equal(
        migrate!.environment![databaseVariable(service)],
        file.services[service]!.environment!['DATABASE_URL'],
        service,
      );
  });

  it('sets only variables that the program reads, with values it accepts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'erp-compose-'));
    await makeBusKeys({ folder, hosts: ['nats'] });
    for (const [name, container] of ours) {
      const environment = Object.fromEntries(
        Object.entries(container.environment ?? {}).map(([key, value]) => [
          key,
          String(value)
            .replace('/run/bus', join(folder, name))
            .replace(/\$\{\w+:-((?:\$\{[^}]*\}|[^}])*)\}/g, '$1')
            .replace(/\$\{\w+:-([^}]*)\}/g, '$1')
            .replace(/\$\{\w+:\?[^}]*\}/g, 'kFh3vQzLr8Wn2TxYp6Jd9MbRc4GsVeUa'),
        ]),
      );
      const known = [...environmentVariables(), ...BUCKET_VARIABLES];
      for (const key of Object.keys(environment)) assert.ok(known.includes(key), `${name}: ${key}`);
      readConfig(environment);
      if (name !== 'bus-keys') readConfig({ ...environment, NODE_ENV: 'production' }, { command: COMMANDS.has(name) });
    }
    rmSync(folder, { recursive: true });
  });

  it('connects each service to the database as its own login, verifying the server', () => {
    for (const [name, container] of ours) {
      if (name === 'bus-keys') continue;
      const url = container.environment?.['DATABASE_URL'];
      assert.ok(url, name);
      assert.match(url, new RegExp(`^postgres://${COMMANDS.has(name) ? 'postgres' : `login_${name}`}:`));
      assert.match(url, /[?&]sslmode=verify-full&sslrootcert=\/certificates\/ca\.crt$/);
    }
  });

  it('has no default for any secret or password', () => {
    for (const [name, container] of services)
      for (const [variable, value] of Object.entries(container.environment ?? {})) {
        const passwords = variable.endsWith('_URL')
          ? [...String(value).matchAll(/:\/\/[^:/]*:(.*)@/g)].map(([, it]) => it)
          : [];
        if (/PASSWORD|SECRET$/.test(variable)) passwords.push(String(value));
        for (const password of passwords) assert.match(password!, /^\$\{\w+:\?[^}]+\}$/, `${name}: ${variable}`);
      }
  });

  it('gives every service its own keys of the bus, and the server its configuration', () => {
    for (const service of [...ALL_SERVICES, 'nats', 'operator'])
      assert.deepEqual(
        file.services[service]!.volumes!.filter((volume) => volume.startsWith('./.bus')),
        [`./.bus/${service}:${service === 'nats' ? '/etc/bus' : '/run/bus'}:ro`],
      );
  });

  it('waits only for existing containers with a health check or an end', () => {
    for (const [name, container] of services)
      for (const [other, { condition }] of Object.entries(container.depends_on ?? {})) {
        assert.ok(file.services[other], `${name} waits for ${other}`);
        if (condition === 'service_healthy') assert.ok(file.services[other].healthcheck, `${other} has a health check`);
      }
    // Its image first starts a server that listens on the socket only, and stops it.
    for (const path of ['docker-compose.yml', 'k8s/overlays/development/postgres.yaml'])
      assert.match(read(path), /pg_isready\W+-h\W+127\.0\.0\.1\b/, path);
  });

  it('restarts all long-running containers after a process exit or a reboot', () => {
    for (const [name, container] of services)
      if (!COMMANDS.has(name) && name !== 'bus-keys') assert.equal(container.restart, 'unless-stopped', name);
  });

  it('gives the console only to the operator, in a separate image', () => {
    for (const [name, { image, build }] of ours)
      if (name === 'operator')
        assert.deepEqual([image, build], ['erp-platform-console:local', { context: '.', target: 'console' }]);
      else assert.deepEqual([image, build], ['erp-platform:local', '.'], name);
  });

  it('starts scripts that exist', () => {
    for (const [name, container] of ours)
      if (container.command?.[0] === 'node') assert.ok(existsSync(join(root, container.command[1]!)), name);
  });
});

describe('the Dockerfile', () => {
  const lines = read('Dockerfile').split('\n');
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));

  it('copies only existing files that .dockerignore includes', () => {
    const sources = lines
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
      .flatMap((line) => line.split(/\s+/).slice(1, -1));
    for (const source of sources) {
      assert.ok(existsSync(join(root, source)), source);
      assert.ok(ignored.includes(source.replace(/^\.\//, '')), `.dockerignore hides ${source}`);
    }
  });

  const commands = {
    program: ['main.ts', 'scripts/migrate.ts', 'scripts/bus-keys.ts', 'scripts/restored.ts'],
    documents: ['scripts/documents.ts'],
  };
  for (const [stage, entries] of Object.entries(commands))
    it(`takes everything that the stage ${stage} and its commands import`, () => {
      const [, rest = ''] = lines.join('\n').split(` AS ${stage}\n`);
      const copied = rest
        .split('\nFROM ')[0]!
        .split('\n')
        .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
        .flatMap((line) => line.split(/\s+/).slice(1, -1));
      const isCopied = (path: string): boolean => copied.some((one) => path === one || path.startsWith(`${one}/`));
      const sources = repositoryFiles().filter((path) => /^(?!docs\/).*\.ts$/.test(path) && isCopied(path));
      for (const entry of entries) assert.ok(sources.includes(entry), entry);
      const missing = sources.flatMap((path) =>
        importsOf(path).flatMap(({ path: imported, typeOnly }) =>
          imported === null || typeOnly || isCopied(imported) ? [] : [`${path}: ${imported}`],
        ),
      );
      assert.deepEqual(missing, []);
    });

  it('builds the image of the services by default, and that of the console as a target', () => {
    const stages = lines.filter((line) => line.startsWith('FROM '));
    assert.equal(stages.at(-1), 'FROM program AS platform');
    assert.ok(stages.includes('FROM program AS console'));
    const [console = ''] = lines.join('\n').split('FROM program AS console\n')[1]!.split('\nFROM ');
    assert.match(console, /^COPY --from=console-dependencies \/app\/node_modules /m);
    // Nothing but that stage has its packages.
    assert.equal(lines.filter((line) => line.includes('--from=console-dependencies')).length, 1);
  });

  it('exposes the ports of the service list', () => {
    const text = lines.join('\n');
    assert.ok(text.includes(` PORT=${PUBLIC_PORT} `), 'PORT');
    assert.ok(text.includes(` HEALTH_PORT=${HEALTH_PORT} `), 'HEALTH_PORT');
    assert.ok(lines.includes(`EXPOSE ${PUBLIC_PORT} ${HEALTH_PORT}`), 'EXPOSE');
  });

  it('does not run as root and has a health check', () => {
    assert.ok(lines.includes('USER node'));
    assert.ok(lines.some((line) => line.startsWith('HEALTHCHECK')));
    assert.ok(lines.includes('CMD ["node", "main.ts"]'));
  });
});
