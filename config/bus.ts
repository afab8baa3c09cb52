/**
 * The settings of the bus: the servers of NATS_URL, TLS, how this process signs in there, and the keys of contexts.
 * Every problem is collected, so that a start reports all of them together; no message repeats a secret.
 * Source: docs/reference/configuration.md, "The bus".
 */
import { accessSync, constants, readFileSync } from 'node:fs';
import { keysOf, OPERATOR, type ServiceName } from './services.ts';

/** How a process proves to NATS who it is. Files are read at every connection, so a renewed one needs no restart. */
export type BusLogin =
  | { readonly user: string; readonly password: string }
  | { readonly user: string; readonly passwordFile: string }
  | { readonly credentialsFile: string }
  | { readonly nkeyFile: string };

export interface BusConfig {
  /** `host:port` of each server. */
  readonly servers: readonly string[];
  /** null: connections are plain text. */
  readonly tls: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string } | null;
  readonly login: BusLogin | null;
  /** Names of the services of this process joined by `+`, or `operator`: what its NATS user may speak for. */
  readonly identity: string;
  /** Keys of request contexts by service, the one to sign with first; null: contexts travel unsigned. */
  readonly contextKeys: ReadonlyMap<string, readonly Buffer[]> | null;
}

const CONTEXT_KEY_BYTES = 32;

type Environment = Readonly<Record<string, string | undefined>>;

/** `addresses`: the checked value of NATS_URL. `services`: those of this process, or none for an operator's. */
export function readBus(
  env: Environment,
  addresses: string,
  { services, production }: { services: readonly ServiceName[]; production: boolean },
  problems: string[],
): BusConfig {
  const urls = addresses.split(',').map((address) => new URL(address));
  const tls = tlsOf(env, urls, problems);
  const login = loginOf(env, urls, problems);
  const contextKeys = services.length > 0 ? contextKeysOf(env, services, problems) : null;
  if (production && env['NATS_ALLOW_INSECURE'] !== 'true') {
    const unless = 'or set NATS_ALLOW_INSECURE=true where the network alone protects the bus.';
    if (!tls) problems.push(`NATS_URL must begin with tls:// in production, ${unless}`);
    if (!login && !tls?.certFile)
      problems.push(`NATS_NKEY_FILE (or another sign-in to NATS) must be set in production, ${unless}`);
    if (services.length > 0 && !env['BUS_KEYS_FILE'])
      problems.push(`BUS_KEYS_FILE must be set in production: make it with \`npm run bus-keys\`, ${unless}`);
  }
  return {
    servers: urls.map(({ host }) => host),
    tls,
    login,
    identity: identityOf(services),
    contextKeys,
  };
}

/** The token by which a process with these services is known on the bus. */
export const identityOf = (services: readonly ServiceName[]): string =>
  services.length === 0 ? OPERATOR : services.toSorted().join('+');

/** The id of a node on the bus: its identity and a name, which cannot be taken for another identity's. */
export const busNodeId = (identity: string, name: string): string =>
  `${identity}/${name.replaceAll(/[^A-Za-z0-9_-]/g, '-')}`;

/** The servers as they may be printed: without credentials. */
export const busAddress = ({ servers, tls }: BusConfig): string =>
  servers.map((server) => `${tls ? 'tls' : 'nats'}://${server}`).join(',');

function tlsOf(env: Environment, urls: readonly URL[], problems: string[]): BusConfig['tls'] {
  const caFile = file(env, 'NATS_CA_FILE', problems);
  const certFile = file(env, 'NATS_CERT_FILE', problems);
  const keyFile = file(env, 'NATS_KEY_FILE', problems);
  if ((env['NATS_CERT_FILE'] || '') === '' && keyFile) problems.push('NATS_KEY_FILE needs NATS_CERT_FILE.');
  if ((env['NATS_KEY_FILE'] || '') === '' && certFile) problems.push('NATS_CERT_FILE needs NATS_KEY_FILE.');
  if (!caFile && !certFile && !urls.some(({ protocol }) => protocol === 'tls:')) return null;
  return { ...(caFile ? { caFile } : {}), ...(certFile && keyFile ? { certFile, keyFile } : {}) };
}

function loginOf(env: Environment, urls: readonly URL[], problems: string[]): BusLogin | null {
  const inUrls = urls.filter(({ username }) => username !== '');
  const [inUrl] = inUrls;
  const credentialsFile = file(env, 'NATS_CREDS_FILE', problems);
  const nkeyFile = file(env, 'NATS_NKEY_FILE', problems);
  const passwordFile = file(env, 'NATS_PASSWORD_FILE', problems);
  const user = env['NATS_USER'] || undefined;
  const ways = [
    ...(inUrl ? ['a user in NATS_URL'] : []),
    ...['NATS_USER', 'NATS_CREDS_FILE', 'NATS_NKEY_FILE'].filter((name) => env[name]),
  ];
  if (ways.length > 1) problems.push(`Only one sign-in to NATS can be set, not ${ways.join(' and ')}.`);
  if (passwordFile && !user) problems.push('NATS_PASSWORD_FILE needs NATS_USER.');
  if (user && !env['NATS_PASSWORD_FILE']) problems.push('NATS_USER needs NATS_PASSWORD_FILE.');
  if (new Set(inUrls.map(({ username, password }) => `${username}:${password}`)).size > 1)
    problems.push('NATS_URL names several users; a process signs in as one.');
  if (credentialsFile) return { credentialsFile };
  if (nkeyFile) return { nkeyFile };
  if (user && passwordFile) return { user, passwordFile };
  if (!inUrl) return null;
  try {
    return { user: decodeURIComponent(inUrl.username), password: decodeURIComponent(inUrl.password) };
  } catch {
    problems.push('NATS_URL must have user and password percent-encoded.');
    return null;
  }
}

/** Lines of a service's name and a key in base64url; several of one name while keys are being replaced. */
function contextKeysOf(
  env: Environment,
  services: readonly ServiceName[],
  problems: string[],
): BusConfig['contextKeys'] {
  const path = file(env, 'BUS_KEYS_FILE', problems);
  if (!path) return null;
  const keys = new Map<string, Buffer[]>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [service = '', text = ''] = line.trim().split(/\s+/);
    const key = Buffer.from(text, 'base64url');
    if (key.length !== CONTEXT_KEY_BYTES) {
      problems.push(`BUS_KEYS_FILE must have a service and a key of ${CONTEXT_KEY_BYTES} bytes in base64url a line.`);
      return null;
    }
    keys.set(service, [...(keys.get(service) ?? []), key]);
  }
  // With a file of an earlier version a process would fail at each call of a new service.
  const missing = keysOf(services).filter((service) => !keys.has(service));
  if (missing.length > 0)
    problems.push(
      `BUS_KEYS_FILE has no key of ${missing.join(', ')}: run \`npm run bus-keys\` and give it the new file.`,
    );
  return keys;
}

/** The path of a file that can be read; undefined when the variable is not set. */
function file(env: Environment, name: string, problems: string[]): string | undefined {
  const path = env[name];
  if (path === undefined || path === '') return undefined;
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    problems.push(`${name} names a file that cannot be read: ${path}.`);
    return undefined;
  }
}
