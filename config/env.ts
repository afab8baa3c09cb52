/**
 * The only reader of the environment. Everything else receives `Config` as a value.
 * Source: docs/reference/configuration.md.
 */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { type BusConfig, busNodeId, readBus } from './bus.ts';
import { type CertificateFile, certificateFiles } from './certificates.ts';
import { type ClamdConfig, type FilesConfig, readClamd, readFiles } from './files.ts';
import { type MailConfig, readMail } from './mail.ts';
import { productionProblems } from './production.ts';
import { ALL_SERVICES, isServiceName, PUBLIC_PORT, SERVICES, type ServiceName } from './services.ts';
import { readTracing, type TracingConfig } from './tracing.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export interface Config {
  /** TCP port of the gateway; 0 picks a free one. */
  port: number;
  /** Address to listen on; `localhost`: 127.0.0.1 and ::1. */
  host: string;
  /** Port for /healthz, /readyz and /metrics, which callers cannot reach; null: none. */
  healthPort: number | null;
  healthHost: string;
  /** Public address without a trailing slash; null: http://localhost:<port>. */
  baseUrl: string | null;
  dataDir: string;
  files: FilesConfig;
  /** Contents are encrypted with the first, and read with any of them; none: they are stored as they are. */
  filesKeys: readonly string[];
  /** Where contents are checked; null: they are not. */
  clamd: ClamdConfig | null;
  /** null: embedded PostgreSQL below dataDir, unless every service has an address of its own. */
  databaseUrl: string | null;
  /** Addresses of the services' own logins, by service; a service without one uses that of `databaseUrl`. */
  databaseUrls: Readonly<Partial<Record<ServiceName, string>>>;
  databasePoolSize: number;
  /** Connections of a pool that one tenant's records may hold at a time; null: half of the pool. */
  databaseTenantConnections: number | null;
  /** null: all services in this process, calls are local. */
  bus: BusConfig | null;
  /** Read by processes that have auth; others send none. */
  mail: MailConfig;
  services: readonly [ServiceName, ...ServiceName[]];
  logLevel: (typeof LOG_LEVELS)[number];
  /** text: for a person at a terminal; json: one object per line. */
  logFormat: 'text' | 'json';
  production: boolean;
  /** Starts on a database that production uses, though this process is not of production. */
  developmentOnProduction: boolean;
  /** Demo tenants are created when missing. Never in production, nor in a database that production uses. */
  seedDemo: boolean;
  demoPassword: string;
  /** Contact for reports of security problems, for security.txt; null: no file is served. */
  securityContact: string | null;
  /** People may sign in to the API reference and try operations out. */
  referenceSignIn: boolean;
  /** Hosts of identity providers that auth may reach though their addresses are not public. */
  ssoPrivateHosts: readonly string[];
  /** Hosts to which webhooks may be sent though their addresses are not public. */
  webhookPrivateHosts: readonly string[];
  /** Proxies in front of the gateway whose X-Forwarded-For entries are believed. */
  trustedProxies: number;
  /**
   * Secret from which sealing keys (cursors, confirmation tokens) are derived; null: generated and kept in the
   * database.
   */
  secret: string | null;
  /** A second secret while the first is replaced: what was sealed with it still opens. */
  previousSecret: string | null;
  /** From SIGTERM to the end of the process, whatever is under way. */
  shutdownSeconds: number;
  /** Of it, the time in which a gateway goes on answering, so that load balancers notice. */
  shutdownGraceSeconds: number;
  /** null: nothing is traced. */
  tracing: TracingConfig | null;
  /** Files with certificates that the process uses. */
  certificateFiles: readonly CertificateFile[];
  nodeId: string;
  region: string;
  rateLimits: {
    connection: number;
    tenant: number;
    anonymous: number;
    daily: number;
    concurrency: number;
    concurrencyCostly: number;
  };
}

/** Public: it stands in README.md. */
const DEFAULT_DEMO_PASSWORD = 'demo-password';

/**
 * The password of the demo users while it may be shown to everybody; null: there are none, also on a database that
 * production uses, or an operator has chosen another password.
 */
export const publicDemoPassword = ({
  seedDemo,
  developmentOnProduction,
  demoPassword,
}: Pick<Config, 'seedDemo' | 'developmentOnProduction' | 'demoPassword'>): string | null =>
  seedDemo && !developmentOnProduction && demoPassword === DEFAULT_DEMO_PASSWORD ? demoPassword : null;
const SHUTDOWN_GRACE_SECONDS = 5;
/** Kept for requests in flight and for what ends after them. */
const SHUTDOWN_RESERVE_SECONDS = 4;
/** Shorter ones can be guessed. */
const SECRET_MIN_CHARS = 32;
/** Default without REGION. */
export const DEFAULT_REGION = 'local';

/** A sentence that a person can act on. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

function integer(env: NodeJS.ProcessEnv, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max)
    throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not ${JSON.stringify(text)}.`);
  return value;
}

function oneOf<T extends string>(env: NodeJS.ProcessEnv, name: string, allowed: readonly T[], fallback: T): T {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const value = allowed.find((one) => one === text);
  if (value === undefined)
    throw new ConfigError(`${name} must be one of ${allowed.join(', ')}, not ${JSON.stringify(text)}.`);
  return value;
}

/** An address, kept as it was written; a list of several where `list` says so. */
function address(env: NodeJS.ProcessEnv, name: string, schemes: readonly string[], list = false): string | null {
  const text = env[name];
  if (text === undefined || text === '') return null;
  const fits = (one: string): boolean => URL.canParse(one) && schemes.includes(new URL(one).protocol.slice(0, -1));
  if (!(list ? text.split(',') : [text]).every(fits))
    throw new ConfigError(`${name} must be an address that begins with ${schemes.map((s) => `${s}://`).join(' or ')}.`);
  return text;
}

/** An address at which people are reached, in one line of a file. */
function contact(env: NodeJS.ProcessEnv, name: string): string | null {
  const text = env[name];
  if (text === undefined || text === '') return null;
  const url = URL.parse(text);
  if (!url || !['mailto:', 'https:', 'tel:'].includes(url.protocol))
    throw new ConfigError(`${name} must be an address that begins with mailto:, https: or tel:.`);
  return url.href;
}

/** Hosts with or without a port, as addresses have them. */
function hosts(env: NodeJS.ProcessEnv, name: string): readonly string[] {
  const names = (env[name] ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
  return names.map((one) => {
    const host = /^[\w.:[\]-]+$/.test(one) ? URL.parse(`https://${one}`)?.host : undefined;
    if (host) return host;
    throw new ConfigError(
      `${name} lists hosts, such as login.corp.example or 10.0.0.7:8443, with commas between them, not ${JSON.stringify(one)}.`,
    );
  });
}

/** By default where there are demo tenants: neither in production nor on a database that production uses. */
function referenceSignIn(env: NodeJS.ProcessEnv, production: boolean): boolean {
  const isDemo = !production && env['SEED_DEMO'] !== 'false' && env['DATABASE_ALLOW_DEVELOPMENT'] !== 'true';
  return oneOf(env, 'API_REFERENCE_SIGN_IN', ['true', 'false'], isDemo ? 'true' : 'false') === 'true';
}

/** The address of a database. The driver would look for one server by the name of the whole list. */
function databaseAddress(env: NodeJS.ProcessEnv, name: string): string | null {
  const text = env[name] ?? '';
  // Passwords with a comma stand before the last @.
  const [, hosts = ''] = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text) ?? [];
  const parameters = new URLSearchParams(/\?([^#]*)/.exec(text)?.[1]);
  if ([hosts, ...parameters.getAll('host'), ...parameters.getAll('port')].some((one) => one.includes(',')))
    throw new ConfigError(
      `${name} names several hosts, which is not supported: give one address that leads to the primary, such as that of ` +
        'a proxy, a virtual address or a name in DNS that the failover moves.',
    );
  return address(env, name, ['postgres', 'postgresql']);
}

function secret(env: NodeJS.ProcessEnv, name: string): string | null {
  const text = env[name];
  if (text === undefined || text === '') return null;
  if (text.length < SECRET_MIN_CHARS)
    throw new ConfigError(`${name} must have at least ${SECRET_MIN_CHARS} characters.`);
  return text;
}

/** The key of contents, and those that earlier contents were encrypted with. */
function filesKeys(env: NodeJS.ProcessEnv): readonly string[] {
  const newest = secret(env, 'FILES_KEY');
  const earlier = (env['FILES_KEYS_PREVIOUS'] ?? '').split(/[\s,]+/).filter(Boolean);
  if (earlier.some((key) => key.length < SECRET_MIN_CHARS))
    throw new ConfigError(`FILES_KEYS_PREVIOUS must list keys of at least ${SECRET_MIN_CHARS} characters.`);
  if (newest === null && earlier.length > 0) throw new ConfigError('FILES_KEYS_PREVIOUS stands beside FILES_KEY.');
  return newest === null ? [] : [newest, ...earlier];
}

function refused(problems: readonly string[], production: boolean): ConfigError {
  return new ConfigError(
    production ? ['With NODE_ENV=production this does not start:', ...problems].join('\n- ') : problems.join('\n'),
  );
}

/** The services that are named; all of them when none is. */
function servicesOf(names: readonly string[]): Config['services'] {
  for (const name of names)
    if (!isServiceName(name))
      throw new ConfigError(`SERVICES names ${JSON.stringify(name)}; there are: ${ALL_SERVICES.join(', ')}.`);
  const [first, ...others] = new Set(names.length ? names.filter(isServiceName) : ALL_SERVICES);
  if (first === undefined) throw new Error('Assertion failed: each name is that of a service');
  return [first, ...others];
}

/** A person who stops the one process of a trial waits for nothing; that of a cluster leaves its load balancers time. */
function shutdownOf(
  env: NodeJS.ProcessEnv,
  behindBalancer: boolean,
): Pick<Config, 'shutdownSeconds' | 'shutdownGraceSeconds'> {
  const shutdownSeconds = integer(env, 'SHUTDOWN_SECONDS', 10, SHUTDOWN_RESERVE_SECONDS + 1, 3_600);
  const most = shutdownSeconds - SHUTDOWN_RESERVE_SECONDS;
  const grace = behindBalancer ? Math.min(SHUTDOWN_GRACE_SECONDS, most) : 0;
  return { shutdownSeconds, shutdownGraceSeconds: integer(env, 'SHUTDOWN_GRACE_SECONDS', grace, 0, most) };
}

/** Addresses of the services' own logins. When there is no DATABASE_URL, all services have one or none. */
function databaseUrlsOf(env: NodeJS.ProcessEnv, services: readonly ServiceName[]): Config['databaseUrls'] {
  const given = new Map<ServiceName, string | null>(
    ALL_SERVICES.map((service) => [service, databaseAddress(env, databaseVariable(service))]),
  );
  const lacking = services.filter((service) => given.get(service) === null);
  const [first] = lacking;
  if (!env['DATABASE_URL'] && first && lacking.length < services.length)
    throw new ConfigError(`${databaseVariable(first)} is not set, and there is no DATABASE_URL to use instead.`);
  return Object.fromEntries([...given].flatMap(([service, url]) => (url === null ? [] : [[service, url]])));
}

/** The variable with the address of a service's own login. */
export const databaseVariable = (service: ServiceName): string => `DATABASE_URL_${service.toUpperCase()}`;

/** The variable with the address that a service connects to. */
export const databaseVariableOf = (service: ServiceName, { databaseUrls }: Pick<Config, 'databaseUrls'>): string =>
  databaseUrls[service] === undefined ? 'DATABASE_URL' : databaseVariable(service);

/** Addresses of databases by variable, of the services of this process. */
function addressesInUse(
  services: readonly ServiceName[],
  databaseUrl: string | null,
  databaseUrls: Config['databaseUrls'],
): Record<string, string | null> {
  return Object.fromEntries(
    services.map((service) => [databaseVariableOf(service, { databaseUrls }), databaseUrls[service] ?? databaseUrl]),
  );
}

/**
 * Reads the environment once. Throws ConfigError with one sentence a person can act on; in production with a line for
 * each thing that is not safe. `command`: a short-lived program of an operator on the database, which seals
 * nothing, needs no secret, and joins no bus, whatever NATS_URL says. `operator`: a command or console by that name; on a
 * bus it joins as the operator and hosts no service.
 */
export function readConfig(
  env: NodeJS.ProcessEnv = process.env,
  { operator, command = operator !== undefined }: { command?: boolean; operator?: string } = {},
): Config {
  // First: a mistyped mode must not start a development process on the data of production.
  const mode = oneOf(env, 'NODE_ENV', ['production', 'development', 'test'] as const, 'development');
  const wanted = (env['SERVICES'] ?? '')
    .split(',')
    .map((s) => s.trim())
    .filter(Boolean);
  const services = servicesOf(wanted);
  const natsUrl = address(env, 'NATS_URL', ['nats', 'tls'], true);
  const isOnDatabaseAlone = command && operator === undefined;
  if (!natsUrl && !isOnDatabaseAlone && services.length < ALL_SERVICES.length)
    throw new ConfigError('SERVICES chooses some services only, so NATS_URL must say where the others are reached.');
  const production = mode === 'production';
  const problems = production ? productionProblems(env, { command, services }) : [];
  const bus =
    natsUrl && !isOnDatabaseAlone
      ? readBus(env, natsUrl, { services: command ? [] : services, production }, problems)
      : null;
  // In development there are demo users with a known password.
  const byDefault = production ? '0.0.0.0' : 'localhost';
  const dataDir = resolve(env['DATA_DIR'] || '.data');
  const sendsMail = !command && services.some((service) => SERVICES[service].sendsMail);
  const mail: MailConfig = sendsMail ? readMail(env, { production, dataDir }, problems) : { by: 'nothing' };
  const files = readFiles(env, dataDir, problems);
  const clamd = readClamd(env, problems);
  const tracing = command ? null : readTracing(env, services, problems);
  if (problems.length > 0) throw refused(problems, production);
  const secrets = { secret: secret(env, 'PLATFORM_SECRET'), previousSecret: secret(env, 'PLATFORM_SECRET_PREVIOUS') };
  if (secrets.previousSecret !== null && (secrets.secret === null || secrets.secret === secrets.previousSecret))
    throw new ConfigError('PLATFORM_SECRET_PREVIOUS stands beside PLATFORM_SECRET, and is another one.');
  const role = services.length === ALL_SERVICES.length ? 'all' : services.join('-');
  // The process id alone is 1 in every container.
  const name = operator ?? (env['NODE_ID'] || `${role}-${hostname()}-${process.pid}`);
  const databaseUrl = databaseAddress(env, 'DATABASE_URL');
  const databaseUrls = databaseUrlsOf(env, services);
  const logFormat = oneOf(env, 'LOG_FORMAT', ['text', 'json'] as const, process.stdout.isTTY ? 'text' : 'json');
  return {
    port: integer(env, 'PORT', PUBLIC_PORT, 0, 65_535),
    host: env['HOST'] || byDefault,
    healthPort: env['HEALTH_PORT'] ? integer(env, 'HEALTH_PORT', 0, 0, 65_535) : null,
    healthHost: env['HEALTH_HOST'] || env['HOST'] || byDefault,
    baseUrl: address(env, 'BASE_URL', ['http', 'https'])?.replace(/(?<!\/)\/+$/, '') ?? null,
    dataDir,
    files,
    filesKeys: filesKeys(env),
    clamd,
    databaseUrl,
    databaseUrls,
    databasePoolSize: integer(env, 'DATABASE_POOL_SIZE', 16, 1, 500),
    databaseTenantConnections: env['DATABASE_TENANT_CONNECTIONS']
      ? integer(env, 'DATABASE_TENANT_CONNECTIONS', 0, 1, 500)
      : null,
    bus,
    mail,
    services,
    logLevel: oneOf(env, 'LOG_LEVEL', LOG_LEVELS, logFormat === 'text' ? 'warn' : 'info'),
    logFormat,
    production,
    developmentOnProduction: env['DATABASE_ALLOW_DEVELOPMENT'] === 'true',
    seedDemo: !production && env['SEED_DEMO'] !== 'false',
    demoPassword: env['DEMO_PASSWORD'] || DEFAULT_DEMO_PASSWORD,
    referenceSignIn: referenceSignIn(env, production),
    securityContact: contact(env, 'SECURITY_CONTACT'),
    ssoPrivateHosts: hosts(env, 'SSO_PRIVATE_HOSTS'),
    webhookPrivateHosts: hosts(env, 'WEBHOOK_PRIVATE_HOSTS'),
    trustedProxies: integer(env, 'TRUSTED_PROXIES', 0, 0, 10),
    ...secrets,
    ...shutdownOf(env, bus !== null && services.includes('gateway')),
    tracing,
    certificateFiles: certificateFiles(env, addressesInUse(services, databaseUrl, databaseUrls)),
    nodeId: bus ? busNodeId(bus.identity, name) : name,
    region: env['REGION'] || DEFAULT_REGION,
    rateLimits: {
      connection: integer(env, 'RATE_CONNECTION_UNITS', 3_000, 1, 1e9),
      tenant: integer(env, 'RATE_TENANT_UNITS', 30_000, 1, 1e9),
      anonymous: integer(env, 'RATE_ANONYMOUS_REQUESTS', 300, 1, 1e9),
      daily: integer(env, 'RATE_DAILY_UNITS', 10_000_000, 1, 1e12),
      concurrency: integer(env, 'CONCURRENCY', 50, 1, 1e6),
      concurrencyCostly: integer(env, 'CONCURRENCY_COSTLY', 8, 1, 1e6),
    },
  };
}
