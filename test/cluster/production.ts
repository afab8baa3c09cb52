/**
 * An installation on this machine as the pages for operators have it: PostgreSQL, NATS, the mail server and the company's OpenID
 * provider with TLS, callers by https, a process for each service with the environment that its pod has from `k8s/`. What the
 * pages print is run as printed; `kubectl` keeps the Secrets in folders and shows the logs of the processes.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { parseAllDocuments } from 'yaml';
import { databaseVariable } from '../../config/env.ts';
import { ALL_SERVICES, CONNECTIONS_MAX, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Certificate, selfSigned } from '../support/certificates.ts';
import { exampleNamed } from '../support/examples.ts';
import { IdentityProvider } from '../support/identity-provider.ts';
import { type MailServer, mailServer } from '../support/mail.ts';
import { type NatsServer, startServer } from '../support/nats.ts';
import { type Collector, startCollector } from '../support/otlp.ts';
import { type Server, Servers } from '../support/postgres.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { read, root } from '../support/sources.ts';
import { runPrinted } from './printed-shell.ts';
import { until } from './stage.ts';
import { Balancer } from './traffic.ts';

/** Of the account that the mail server gave the platform. */
export const MAIL_PASSWORD = randomBytes(16).toString('hex');
/** From the pages: two more seconds, in which the gateways discover the new process. */
const FOUND_MS = 2_000;
/** The ingress asks that often; half of SHUTDOWN_GRACE_SECONDS is longer. */
const PROBE_MS = 200;

/**
 * The commands of the pages, as far as they are not there. `kubectl exec` runs in no container: it gets the environment of a pod
 * of metadata, and a folder in place of its `/tmp`.
 */
const KUBECTL = `
erp() { "$NODE" "$ROOT/cli/bin/erp.js" "$@"; }
kubectl() {
  [ "$1" != -n ] || shift 2
  local what="$1 \${2-}"; shift 2
  case $what in
    'create namespace' | 'delete job' | 'rollout restart') ;;
    'get pod') echo pod/metadata-1 ;;
    'apply --namespace') kubectl apply "\${@:2}" ;;
    'apply -k')
      [ -f "$ROOT/$1/kustomization.yaml" ]
      # The manifests that it would apply; with a label, that there are some.
      if type -P kubectl > /dev/null; then command kubectl kustomize "$ROOT/$1" | grep -c "\${3:+\${3%%=*}: \${3#*=}}" > /dev/null; fi ;;
    'apply -f') "$NODE" -e '
      const { name, data } = JSON.parse(fs.readFileSync(0));
      for (const [key, value] of Object.entries(data)) fs.writeFileSync(process.argv[1] + "/" + name + "/" + key, value);
      ' "$SECRETS" ;;
    'create secret')
      local name=$2 folder="$SECRETS/$2" option; shift 2
      if [[ " $* " == *' --dry-run=client -o yaml '* ]]; then folder=$(mktemp -d "$PODTMP/secret-XXXX"); fi
      mkdir -p "$folder"
      for option; do
        case $option in
          --from-literal=*) option=\${option#*=}; printf %s "\${option#*=}" > "$folder/\${option%%=*}" ;;
          --from-file=*) option=\${option#*=}; if [ -d "$option" ]; then cp "$option"/* "$folder"; else cp "$option" "$folder"; fi ;;
          --dry-run=client | -o | yaml) ;;
          *) echo "kubectl create secret: $option" >&2; return 1 ;;
        esac
      done
      [ "$folder" = "$SECRETS/$name" ] || "$NODE" -e '
        const [name, folder] = process.argv.slice(1);
        const data = Object.fromEntries(fs.readdirSync(folder).map((key) => [key, fs.readFileSync(folder + "/" + key, "utf8")]));
        console.log(JSON.stringify({ name, data }));
        ' "$name" "$folder" ;;
    'get secret') local key=\${3#*.data.}; base64 -w 0 "$SECRETS/$1/\${key%\\}}" ;;
    'patch secret') "$NODE" -e '
      const [folder, patch] = process.argv.slice(1);
      for (const [key, value] of Object.entries(JSON.parse(patch).stringData)) fs.writeFileSync(folder + "/" + key, value);
      ' "$SECRETS/$1" "$5" ;;
    'wait --for=condition=complete') curl -sf -X POST "$CONTROL/migrate" ;;
    'rollout status') curl -sf -X POST "$CONTROL/rollout" ;;
    'logs --selector') local log; for log in $LOGS; do sed "s|^|[pod/$(basename "$log" .log)/platform] |" "$log"; done ;;
    # Its container has what later commands in it are given.
    'debug pod/'*)
      local option
      for option; do [[ $option != *_*=* ]] || echo "\${option//\\/tmp\\/operator/$PODTMP/operator}"; done > "$PODTMP/console"
      [[ " $* " == *' --image erpplatform/erp-platform-console:'* ]] ;;
    'cp --container') [ -f "$PODTMP/console" ] && cp -R "$2" "$PODTMP/operator" ;;
    'cp '*) cp -R "\${what#cp }" "$PODTMP/operator" ;;
    'exec '*)
      local inside=; while [ "$1" != -- ]; do [[ $1 != --container ]] || inside=$PODTMP/console; shift; done; shift
      (
        set -a; . "$PODENV"; [ -z "$inside" ] || . "$inside"; set +a
        [ "$1" = rm ] || cd "$ROOT"
        "\${@//\\/tmp\\/operator/$PODTMP/operator}"
      ) ;;
    *) echo "kubectl $what $*" >&2; return 1 ;;
  esac
}
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

/** The value of a variable that an example sets. */
const variable = (name: string, key: string): string =>
  new RegExp(`^${key}=(?:"([^"]+)"|(\\S+))`, 'm').exec(exampleNamed(name))?.slice(1).find(Boolean) ?? '';

/** A process of a service, and where it is asked how it is. */
interface Pod {
  readonly service: ServiceName;
  readonly process: ServiceProcess;
  readonly health: string;
  /** Of a gateway, for callers; 0 otherwise. */
  readonly port: number;
}

interface Ready {
  readonly code: number;
  readonly status: string;
  readonly checks: Readonly<Record<string, boolean>>;
  readonly degraded?: readonly string[];
}

export class Production {
  readonly folder = mkdtempSync(join(tmpdir(), 'erp-production-'));
  readonly secrets = join(this.folder, 'secrets');
  readonly baseUrl: string;
  readonly postgres: Server;
  readonly mail: MailServer;
  readonly provider: IdentityProvider;
  readonly collector: Collector;
  /** `kustomization.yaml` of the overlay. */
  readonly settings: Record<string, string>;
  readonly pods = new Map<ServiceName, Pod>();
  readonly #certificate: Certificate;
  readonly #servers: Servers;
  readonly #balancer: Balancer;
  readonly #everybody: ServiceProcess[] = [];
  readonly #trusted = getCACertificates();
  /** Effect of the pages' `kubectl` commands. */
  readonly #control = createServer(async (req, res) => {
    try {
      if (req.url === '/migrate') await this.migrate();
      else await this.rollOut();
      res.end();
    } catch (error) {
      res.writeHead(500).end();
      this.failures.push(error);
    }
  });
  readonly failures: unknown[] = [];
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
    for (const folder of [this.secrets, this.file('tmp'), this.file('written')]) mkdirSync(folder);
    for (const name of ['docs', 'node_modules', 'package.json']) symlinkSync(join(root, name), this.file(name));
    this.#control.listen(0, '127.0.0.1');
    writeFileSync(this.file('ca.crt'), parts.certificate.cert);
    this.settings = {
      ...literals('k8s/base/kustomization.yaml'),
      ...literals('k8s/overlays/production/kustomization.yaml'),
      BASE_URL: this.baseUrl,
      // A minute of the pages takes two seconds here.
      SHUTDOWN_GRACE_SECONDS: '2',
      MAIL_FROM: variable('docs/reference/mail.md#setting-it-up', 'MAIL_FROM'),
      SMTP_CA_FILE: this.file('ca.crt'),
      SSO_PRIVATE_HOSTS: this.provider.host,
      NODE_EXTRA_CA_CERTS: this.file('ca.crt'),
      OTEL_BSP_SCHEDULE_DELAY: '500',
      OTEL_EXPORTER_OTLP_ENDPOINT: this.here(
        variable('docs/reference/tracing.md#tracing', 'OTEL_EXPORTER_OTLP_ENDPOINT'),
      ),
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
      .replaceAll('http://collector.internal:4318', this.collector.url)
      .replaceAll('http://localhost:3000', this.baseUrl);
  }

  /** Environment of the database owner for `npm run migrate`: the address of every service. */
  async migrate(): Promise<string> {
    const names = ['DATABASE_URL', ...ALL_SERVICES.map(databaseVariable)];
    const addresses = names.map((name) => [name, this.secret('platform', name)]);
    return this.shell('npm run migrate', { NODE_ENV: 'production', ...Object.fromEntries(addresses) });
  }

  /** Runs the example of a page; `change` says what differs here, `input` is typed. Answers what it printed, stderr last. */
  async run(
    name: string,
    {
      change = (text) => text,
      env = {},
      input,
    }: { change?: (text: string) => string; env?: Record<string, string>; input?: string } = {},
  ): Promise<string> {
    return this.shell(change(this.here(exampleNamed(name))), env, input);
  }

  /** The same for a text. It works in the folder of the installation. */
  shell(text: string, env: Record<string, string> = {}, input = ''): Promise<string> {
    return runPrinted({
      functions: KUBECTL,
      text,
      folder: this.folder,
      input,
      env: {
        TMPDIR: this.file('written'),
        CONTROL: `http://127.0.0.1:${(this.#control.address() as AddressInfo).port}`,
        PODENV: this.file('pod.env'),
        PODTMP: this.file('tmp'),
        SECRETS: this.secrets,
        LOGS: this.#everybody.map(({ log }) => log).join(' '),
        NODE_EXTRA_CA_CERTS: this.file('ca.crt'),
        CURL_CA_BUNDLE: this.file('ca.crt'),
        ...env,
      },
    });
  }

  /** SQL of the pages, by the superuser. */
  async sql(name: string, change: (text: string) => string): Promise<void> {
    for (const statement of change(exampleNamed(name))
      .split(/;\n/)
      .filter((text) => text.trim()))
      await this.postgres.query(statement, 'postgres');
  }

  /** NATS as `npm run bus-keys` has set it up. */
  async startNats(keys: string): Promise<void> {
    this.#nats = await startServer({ scheme: 'tls', folder: join(keys, 'nats'), arguments: ['--config', 'nats.conf'] });
    this.settings['NATS_URL'] = this.#nats.url.replace('127.0.0.1', 'localhost');
  }

  /** Environment of an operator with the folder `operator` of the keys. */
  get operator(): Record<string, string> {
    return {
      NATS_URL: this.settings['NATS_URL'] ?? '',
      NATS_CA_FILE: this.file('keys/operator/ca.pem'),
      NATS_NKEY_FILE: this.file('keys/operator/user.nk'),
    };
  }

  /** Environment of a pod's container: the ConfigMap, and the variables of its Deployment, with the Secrets as files. */
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

  /** Runs the init container of the service's pod, which waits for the migration. Returns its log. */
  async waitForMigration(service: ServiceName): Promise<string> {
    const { DATABASE_URL, SERVICES } = this.environmentOf(service) as { DATABASE_URL: string; SERVICES: string };
    return this.shell('npm run migrate -- --wait', { ...this.settings, DATABASE_URL, SERVICES });
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
    await until(`${service} is ready`, async () => (await this.ready(pod)).code === 200, 60_000);
    if (port) await this.#balancer.add(port, healthPort);
    return pod;
  }

  /** The first pod of each service. */
  async startAll(): Promise<void> {
    for (const pod of await Promise.all(ALL_SERVICES.map((service) => this.startPod(service))))
      this.pods.set(pod.service, pod);
    const variables = Object.entries({ ...this.environmentOf('metadata'), SERVICES: 'metadata' });
    const lines = variables.map(([name, value]) => `${name}='${value}'\n`);
    writeFileSync(this.file('pod.env'), lines.join(''), { mode: 0o600 });
  }

  async ready({ health }: Pod): Promise<Ready> {
    const response = await fetch(`${health}/readyz`);
    return { code: response.status, ...((await response.json()) as Omit<Ready, 'code'>) };
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
    this.#control.close();
    setDefaultCACertificates(this.#trusted);
    await Promise.all([this.mail.close(), this.provider.close(), this.collector.stop(), this.#nats?.stop()]);
    await this.#servers.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
