/**
 * Opens a door to the database for each service of a process. Where the process knows the owner of the database, the
 * owner brings everything up to date first and gives each service a login of its own; otherwise the operator has done
 * so with `npm run migrate`, and the process knows the logins of its services alone.
 */
import { type Config, ConfigError, databaseVariable, databaseVariableOf } from '../../config/env.ts';
import { ALL_SERVICES, SERVICES, type ServiceName } from '../../config/services.ts';
import { Database } from './database.ts';
import { joinInstallation, keepFromProduction } from './installation.ts';
import {
  canSignIn,
  derivedUrl,
  derivePassword,
  givePassword,
  hasDerivedPassword,
  isOwner,
  lacksPassword,
  loginOf,
} from './logins.ts';
import { explained } from './problem.ts';
import { untilReachable } from './reachable.ts';
import { requireSupportedServer } from './server-version.ts';

export interface OpenOptions {
  /** The address that is not a service's own: DATABASE_URL, or that of the embedded database; null: there is none. */
  readonly url: string | null;
  /** Brings tables, roles and logins up to date, as the owner of the database. */
  readonly prepare: (owner: Database) => Promise<void>;
  /** Throws when the tables of a service are not up to date. */
  readonly check: (database: Database, service: ServiceName) => Promise<void>;
  readonly warn: (message: string) => void;
  /** Told what is waited for, and null when it is there. */
  readonly waiting?: (reason: string | null) => void;
  /** Ends the wait. */
  readonly stopped?: AbortSignal | undefined;
}

/** The doors by service. The caller closes them. */
export async function openDatabases(config: Config, options: OpenOptions): Promise<Map<ServiceName, Database>> {
  const { url } = options;
  for (const address of serversOf(config, url)) await untilReachable(address, options);
  const owned = url === null ? null : await prepareAsOwner(config, url, options);
  const databases = new Map<ServiceName, Database>();
  for (const service of config.services) {
    const address = config.databaseUrls[service] ?? owned?.get(service) ?? url;
    if (!address) throw new Error(`The service ${service} has no database.`);
    databases.set(service, openDatabase(config, service, address, options));
  }
  try {
    for (const [service, database] of databases) {
      const address = { variable: databaseVariableOf(service, config), url: database.url, expected: loginOf(service) };
      if (!owned && service === config.services[0])
        await explained(requireSupportedServer(database, options.warn), address);
      if (!owned) await explained(options.check(database, service), address);
      // Findings of one login hold for all of them: they share one database.
      if (service === config.services[0]) await explained(joinInstallation(database, config), address);
    }
  } catch (error) {
    await Promise.all([...databases.values()].map((database) => database.close()));
    throw error;
  }
  return databases;
}

/** An address of each server that the process uses: they are nearly always one. */
function serversOf({ databaseUrls }: Config, url: string | null): { variable: string; url: string }[] {
  const all = ALL_SERVICES.flatMap((service) => {
    const own = databaseUrls[service];
    return own === undefined ? [] : [{ variable: databaseVariable(service), url: own }];
  });
  if (url !== null) all.unshift({ variable: 'DATABASE_URL', url });
  return [...Map.groupBy(all, (address) => new URL(address.url).host).values()].flatMap((same) => same.slice(0, 1));
}

function openDatabase(config: Config, service: ServiceName, url: string, { warn }: OpenOptions): Database {
  return new Database(url, {
    size: poolSize(config, service),
    perTenant: config.databaseTenantConnections ?? undefined,
    applicationName: `erp ${service} ${config.nodeId}`,
    onError: (error) => warn(`An idle database connection was lost: ${error.message}`),
    onRefused: (error) => warn(`The database refuses the login of ${service}: ${error.message}`),
    onTrouble: (message) => warn(`${message} (${service})`),
    watchesLink: true,
  });
}

/**
 * Connections of a service. Jobs may hold one for minutes, so no service has fewer for sharing a process with others;
 * a service without rights in the database only asks whether it answers.
 */
const poolSize = ({ databasePoolSize }: Config, service: ServiceName): number =>
  SERVICES[service].database ? databasePoolSize : Math.min(2, databasePoolSize);

/** Addresses of the services' logins; null when `url` is not that of the owner. */
async function prepareAsOwner(
  config: Config,
  url: string,
  { prepare, warn }: OpenOptions,
): Promise<ReadonlyMap<ServiceName, string> | null> {
  const owner = new Database(url, { size: 2, applicationName: `erp owner ${config.nodeId}` });
  try {
    if (!(await explained(isOwner(owner), { variable: 'DATABASE_URL', url }))) return null;
    await requireSupportedServer(owner, warn);
    if (config.production && config.databaseUrl !== null)
      throw new ConfigError(
        'DATABASE_URL is the address of the owner of the database, which no service has in production: run ' +
          '`npm run migrate` with it, and start services with those of their logins ' +
          `(${config.services.map(databaseVariable).join(', ')}).`,
      );
    await keepFromProduction(owner, config);
    await prepare(owner);
    return await loginUrls(owner, config, warn);
  } finally {
    await owner.close();
  }
}

/** The services of the process can sign in: with the passwords that are given, or that are derived from the owner's. */
async function loginUrls(
  owner: Database,
  config: Config,
  warn: (message: string) => void,
): Promise<Map<ServiceName, string>> {
  await givePasswords(owner, config, config.services, warn);
  const urls = new Map<ServiceName, string>();
  for (const service of config.services) {
    if (config.databaseUrls[service] !== undefined) continue;
    const address = derivedUrl(owner.url, service);
    if (address === null) warn(`The owner of the database signs in without a password: ${service} shares its login.`);
    else await derivePassword(owner, service, address, config.databaseUrl === null);
    urls.set(service, address ?? owner.url);
  }
  return urls;
}

/** Gives the logins the passwords of their addresses, and changes those of no others: running processes use them. */
export async function givePasswords(
  owner: Database,
  config: Config,
  services: readonly ServiceName[],
  warn: (message: string) => void,
): Promise<void> {
  for (const service of services) {
    const given = config.databaseUrls[service];
    if (given === undefined) continue;
    const user = decodeURIComponent(new URL(given).username);
    if (user === loginOf(service))
      await explained(givePassword(owner, service, given), { variable: databaseVariable(service), url: given });
    else warn(`The service ${service} signs in to the database as ${user}, not as ${loginOf(service)}.`);
  }
}

/**
 * Warns of logins to which no operator has given a password, where services are meant to sign in with their own: in
 * production, and where another login is given one.
 */
export async function warnOfMissingPasswords(
  owner: Database,
  { databaseUrls, production }: Config,
  services: readonly ServiceName[],
  warn: (message: string) => void,
): Promise<void> {
  if (!production && Object.keys(databaseUrls).length === 0) return;
  const missing: ServiceName[] = [];
  for (const service of services)
    if (databaseUrls[service] === undefined && (await hasDerivedPassword(owner, service))) missing.push(service);
  if (missing.length > 0)
    warn(
      `${missing.map(loginOf).join(', ')} cannot sign in with a password of an operator, because none was given: set ` +
        `${missing.map(databaseVariable).join(', ')} and migrate again before these services start.`,
    );
}

/**
 * Warns of logins that cannot sign in any more after a restore: the dump of a database holds no roles, and one of roles
 * may hold no passwords. Of a login whose address is not given, the server says only to a superuser whether it has one.
 */
export async function warnOfLostPasswords(
  owner: Database,
  { databaseUrls }: Config,
  services: readonly ServiceName[],
  warn: (message: string) => void,
): Promise<void> {
  const lost: ServiceName[] = [];
  for (const service of services) {
    const given = databaseUrls[service];
    // When the owner needs no password, or the server accepts any, the login needs none either.
    const tried = given ?? derivedUrl(owner.url, service);
    if (tried === null || (given === undefined && !(await lacksPassword(owner, service)))) continue;
    if (!(await canSignIn(tried))) lost.push(service);
  }
  if (lost.length > 0)
    warn(
      `${lost.map(loginOf).join(', ')} cannot sign in with a password: run \`npm run migrate\` with ` +
        `${lost.map(databaseVariable).join(', ')} before these services start.`,
    );
}
