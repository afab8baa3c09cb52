/**
 * An installation on this machine as the pages for operators have it: PostgreSQL, NATS, the mail server and the company's OpenID
 * provider with TLS, callers by https, a process for each service with the environment that its pod has from `k8s/`. What the
 * pages print is run as printed; `kubectl` keeps the Secrets in folders and shows the logs of the processes.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { ALL_SERVICES, CONNECTIONS_MAX, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Certificate, selfSigned } from '../support/certificates.ts';
import { exampleNamed } from '../support/examples.ts';
import { IdentityProvider } from '../support/identity-provider.ts';
import { type MailServer, mailServer } from '../support/mail.ts';
import { type NatsServer, startServer } from '../support/nats.ts';
import { type Collector, startCollector } from '../support/otlp.ts';
import { type Server, Servers } from '../support/postgres.ts';
import { compileCache, type ServiceProcess, startProcess } from '../support/processes.ts';
import { read, root } from '../support/sources.ts';
import { until } from './stage.ts';
import { Balancer } from './traffic.ts';

const MAIL_PASSWORD = randomBytes(16).toString('hex');
/** What the pages say: two seconds more, in which the gateways find the new process. */
const FOUND_MS = 2_000;
/** The ingress asks that often; half of SHUTDOWN_GRACE_SECONDS is longer. */
const PROBE_MS = 200;

/** The commands of the pages, as far as they are not there. */
const SHELL = `
npm() {
  shift; [ "$1" != --silent ] || shift
  local name=$1; shift; [ "\${1-}" != -- ] || shift
  "$NODE" "$ROOT/scripts/$name.ts" "$@"
}
npx() { shift; "$NODE" "$ROOT/cli/bin/erp.js" "$@"; }
kubectl() {
  [ "$1" != -n ] || shift 2
  case "$1 $2" in
    'create namespace') ;;
    'create secret')
      local folder="$SECRETS/$4" option; mkdir -p "$folder"; shift 4
      for option; do
        case $option in
          --from-literal=*) option=\${option#*=}; printf %s "\${option#*=}" > "$folder/\${option%%=*}" ;;
          --from-file=*) option=\${option#*=}; if [ -d "$option" ]; then cp "$option"/* "$folder"; else cp "$option" "$folder"; fi ;;
          *) echo "kubectl create secret: $option" >&2; return 1 ;;
        esac
      done ;;
    'logs --selector') local log; for log in $LOGS; do sed "s|^|[pod/$(basename "$log" .log)/platform] |" "$log"; done ;;
    *) echo "kubectl $*" >&2; return 1 ;;
  esac
}
set -o pipefail
`;

// biome-ignore lint/suspicious/noExplicitAny: manifests have no types here
type Manifest = any;
const manifests = (path: string): Manifest[] => parseAllDocuments(read(path)).map((document) => document.toJS());
const literals = (path: string): Record<string, string> =>
  Object.fromEntries(
    manifests(path)
      .flatMap(({ configMapGenerator = [] }) => configMapGenerator[0]?.literals ?? [])
      .map((literal: string) => [literal.slice(0, literal.indexOf('=')), literal.slice(literal.indexOf('=') + 1)]),
  );

/** A process of a service, and where it is asked how it is. */
export interface Pod {
  readonly service: ServiceName;
  readonly process: ServiceProcess;
  readonly health: string;
  /** Of a gateway, for callers; 0 otherwise. */
  readonly port: number;
}

export class Production {
  readonly folder = mkdtempSync(join(tmpdir(), 'erp-production-'));
  readonly secrets = join(this.folder, 'secrets');
  readonly baseUrl: string;
  readonly postgres: Server;
  readonly mail: MailServer;
  readonly provider: IdentityProvider;
  readonly collector: Collector;
  /** What `kustomization.yaml` of the overlay says. */
  readonly settings: Record<string, string>;
  readonly pods = new Map<ServiceName, Pod>();
  readonly #certificate: Certificate;
  readonly #servers: Servers;
  readonly #balancer: Balancer;
  readonly #everybody: ServiceProcess[] = [];
  readonly #trusted = getCACertificates();
  #nats: NatsServer | undefined;

  private constructor(parts: {
    certificate: Certificate;
    servers: Servers;
    postgres: Server;
    mail: MailServer;
    provider: IdentityProvider;
    collector: Collector;
    port: number;
  }) {
    this.#certificate = parts.certificate;
    this.#servers = parts.servers;
    this.postgres = parts.postgres;
    this.mail = parts.mail;
    this.provider = parts.provider;
    this.collector = parts.collector;
    this.baseUrl = `https://localhost:${parts.port}`;
    this.#balancer = new Balancer(parts.port, PROBE_MS, parts.certificate);
    setDefaultCACertificates([...this.#trusted, parts.certificate.cert]);
    mkdirSync(this.secrets);
    writeFileSync(this.file('ca.crt'), parts.certificate.cert);
    writeFileSync(this.file('smtp'), `${MAIL_PASSWORD}\n`);
    this.settings = {
      ...literals('k8s/base/kustomization.yaml'),
      ...literals('k8s/overlays/production/kustomization.yaml'),
      BASE_URL: this.baseUrl,
      // A minute of the pages takes two seconds here.
      SHUTDOWN_GRACE_SECONDS: '2',
      SSO_PRIVATE_HOSTS: this.provider.host,
      NODE_EXTRA_CA_CERTS: this.file('ca.crt'),
    };
  }

  /** Everything that the platform stands on; nothing of the platform runs yet. */
  static async begin(): Promise<Production> {
    const certificate = await selfSigned('localhost');
    const servers = new Servers();
    const provider = new IdentityProvider(certificate);
    const settings = [
      `max_connections=${CONNECTIONS_MAX}`,
      'max_locks_per_transaction=512',
      'ssl=on',
      'ssl_cert_file=server.crt',
      'ssl_key_file=server.key',
    ];
    const [postgres, mail, collector, port] = await Promise.all([
      servers.create('server', settings, (folder) => {
        servers.write(join(folder, 'server.crt'), certificate.cert);
        servers.write(join(folder, 'server.key'), certificate.key);
        // Nobody but the superuser of the machine gets in without TLS and a password.
        const rules = ['host all postgres 127.0.0.1/32 trust', 'hostssl all all 127.0.0.1/32 scram-sha-256'];
        servers.write(join(folder, 'pg_hba.conf'), `${rules.join('\n')}\n`);
      }),
      mailServer({
        disabledCommands: [],
        authOptional: false,
        ...certificate,
        onAuth: ({ username, password }, _session, done) =>
          username === 'erp' && password === MAIL_PASSWORD
            ? done(null, { user: username })
            : done(new Error('wrong password')),
      }),
      startCollector(),
      freePort(),
      provider.listen(),
    ]);
    await postgres.query('DROP DATABASE erp', 'postgres');
    return new Production({ certificate, servers, postgres, mail, provider, collector, port });
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  secret(name: string, key: string): string {
    return readFileSync(join(this.secrets, name, key), 'utf8');
  }

  /** A text of the pages with the hosts of this machine. Each `…` in place of a password is one of its own. */
  here(text: string): string {
    return text
      .replaceAll(/:…@/g, () => `:${randomBytes(24).toString('hex')}@`)
      .replaceAll('db.internal:5432', `localhost:${this.postgres.port}`)
      .replaceAll('/etc/erp/database', join(this.secrets, 'database-ca'))
      .replaceAll('nats.internal', 'localhost')
      .replaceAll('mail.example.com', `localhost:${this.mail.port}`)
      .replaceAll('/run/secrets/smtp', this.file('smtp'))
      .replaceAll('http://collector.internal:4318', this.collector.url)
      .replaceAll('http://localhost:3000', this.baseUrl);
  }

  /** Runs the example of a page; `change` says what differs here. Answers what it printed, stderr last. */
  async run(
    name: string,
    { change = (text) => text, env = {} }: { change?: (text: string) => string; env?: Record<string, string> } = {},
  ): Promise<string> {
    return this.shell(change(this.here(exampleNamed(name))), env);
  }

  /** The same for a text. It works in the folder of the installation. */
  async shell(text: string, env: Record<string, string> = {}): Promise<string> {
    try {
      const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-ec', SHELL + text], {
        cwd: this.folder,
        env: {
          PATH: process.env['PATH'],
          HOME: this.folder,
          ...compileCache(),
          ROOT: root,
          NODE: process.execPath,
          REPOSITORY: root,
          SECRETS: this.secrets,
          LOGS: this.#everybody.map(({ log }) => log).join(' '),
          NODE_EXTRA_CA_CERTS: this.file('ca.crt'),
          CURL_CA_BUNDLE: this.file('ca.crt'),
          ...env,
        },
        maxBuffer: 64 * 1024 * 1024,
      });
      return stdout + stderr;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${text}\n${stdout}\n${stderr}`, { cause: error });
    }
  }

  /** SQL of the pages, by the superuser. */
  async sql(name: string, change: (text: string) => string): Promise<void> {
    for (const statement of change(exampleNamed(name)).split(/;\n/).filter((text) => text.trim()))
      await this.postgres.query(statement, 'postgres');
  }

  /** NATS as `npm run bus-keys` has set it up. */
  async startNats(keys: string): Promise<void> {
    this.#nats = await startServer({ scheme: 'tls', folder: join(keys, 'nats'), arguments: ['--config', 'nats.conf'] });
    this.settings['NATS_URL'] = this.#nats.url.replace('127.0.0.1', 'localhost');
  }

  /** What an operator sets, who has the folder `operator` of the keys. */
  get operator(): Record<string, string> {
    return {
      NATS_URL: this.settings['NATS_URL'] ?? '',
      NATS_CA_FILE: this.file('keys/operator/ca.pem'),
      NATS_NKEY_FILE: this.file('keys/operator/user.nk'),
    };
  }

  /** What the container of a pod gets: the ConfigMap, and what its Deployment names, with the Secrets as files. */
  environmentOf(service: ServiceName): Record<string, string> {
    const containerOf = (path: string): Manifest =>
      manifests(path).find(({ kind }) => kind === 'Deployment').spec.template.spec.containers[0];
    const named = [containerOf('k8s/base/pod.yaml'), containerOf(`k8s/base/services/${service}.yaml`)];
    const env: Record<string, string> = { ...this.settings };
    for (const { name, value, valueFrom } of named.flatMap(({ env: variables = [] }) => variables)) {
      const { name: secret, key } = valueFrom?.secretKeyRef ?? {};
      if (value !== undefined) env[name] = value.replace('/run/bus', join(this.secrets, `bus-${service}`));
      else if (secret && readdirSync(join(this.secrets, secret)).includes(key)) env[name] = this.secret(secret, key);
    }
    return env;
  }

  /** A new pod of the service, which is ready. It has no name of its own, because a machine has no pods. */
  async startPod(service: ServiceName): Promise<Pod> {
    const [healthPort, port] = await Promise.all([freePort(), service === 'gateway' ? freePort() : 0]);
    const env = {
      ...this.environmentOf(service),
      HOST: '127.0.0.1',
      HEALTH_PORT: String(healthPort),
      PORT: String(port),
    };
    const started = await startProcess({
      services: [service],
      databaseUrl: '',
      natsUrl: '',
      patience: 120_000,
      production: true,
      env,
    });
    this.#everybody.push(started);
    const pod = { service, process: started, health: `http://127.0.0.1:${healthPort}`, port };
    await until(`${service} is ready`, async () => (await this.ready(pod)).status === 200, 60_000);
    if (port) await this.#balancer.add(port);
    return pod;
  }

  /** The first pod of each service. */
  async startAll(): Promise<void> {
    for (const pod of await Promise.all(ALL_SERVICES.map((service) => this.startPod(service))))
      this.pods.set(pod.service, pod);
  }

  ready({ health }: Pod): Promise<Response> {
    return fetch(`${health}/readyz`);
  }

  /** One pod replaced, in the steps of the page about upgrades. */
  async replace(service: ServiceName): Promise<void> {
    const old = this.pods.get(service)!;
    this.pods.set(service, await this.startPod(service));
    await pause(FOUND_MS);
    const code = await old.process.stop();
    if (old.port) this.#balancer.remove(old.port);
    if (code !== 0) throw new Error(`${service} ended with ${code}: ${old.process.output().slice(-2_000)}`);
  }

  /** A rollout: all services at the same time, as Kubernetes does. */
  async rollOut(): Promise<void> {
    await Promise.all(ALL_SERVICES.map((service) => this.replace(service)));
  }

  /** Everything that all processes have printed. */
  logs(): string {
    return this.#everybody.map((process) => process.output()).join('');
  }

  crashes(): string[] {
    return this.#everybody.flatMap((process) => process.crash() ?? []);
  }

  async end(): Promise<void> {
    await Promise.all([...this.pods.values()].map(({ process }) => process.kill()));
    this.#balancer.close();
    setDefaultCACertificates(this.#trusted);
    await Promise.all([this.mail.close(), this.provider.close(), this.collector.stop(), this.#nats?.stop()]);
    await this.#servers.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
