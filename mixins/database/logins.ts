/**
 * A login role for each service, which may enter the roles that its work needs and no others: a statement that gets
 * past everything else in one service reaches what this service reaches. The owner of the database makes and repairs
 * them, with every migration. Source: docs/decisions/roles-of-a-transaction.md.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { ConfigError, databaseVariable } from '../../config/env.ts';
import { ALL_SERVICES, SERVICES, type ServiceName } from '../../config/services.ts';
import { type Database, sqlState } from './database.ts';
import {
  actOnTenantsSql,
  CLOSE_DATABASE,
  callSql,
  createLoginSql,
  ENTER_TENANTS,
  enterSql,
  hasLostPassword,
  isDerived,
  MAY_CREATE_ROLES,
  MAY_READ_PASSWORDS,
  markDerivedSql,
  roleCallSql,
  setPasswordSql,
  useSchemaSql,
} from './logins.sql.ts';
import { oneByOne } from './migrate.ts';
import { PageClient } from './page-client.ts';
import { defaultsSql } from './session.ts';

/** Of the queues in mixins/jobs. */
const JOBS_SCHEMA = 'pgboss';

/** What a mutation under a run of an agent calls: whether the run goes on, and the approval that it consumes. */
const MUTATION_ROUTINES = [
  'agent.continue_run(uuid, uuid, integer)',
  'agent.consume_approval(uuid, uuid, uuid, text, text)',
  'agent.end_stale_approval(uuid, uuid, uuid)',
];

/** Name of the role that the service signs in as. */
export const loginOf = (service: ServiceName): string => `login_${service}`;

/** True when the connection's account is the owner, not a service's login. */
export const isOwner = (database: Database): Promise<boolean> =>
  database.login(async (tx) => (await tx.one<{ yes: boolean }>(MAY_CREATE_ROLES)).yes);

/** Makes the logins of all services, and gives those of `services` what they need of the tables that are there. */
export function ensureLogins(owner: Database, services: readonly ServiceName[]): Promise<void> {
  return oneByOne(owner, async (tx) => {
    for (const service of ALL_SERVICES) {
      await tx.query(createLoginSql(loginOf(service)));
      await tx.query(defaultsSql(loginOf(service)));
    }
    await tx.query(CLOSE_DATABASE);
    for (const service of services) {
      const { database } = SERVICES[service];
      const login = loginOf(service);
      await tx.query(enterSql(login, database ? [`svc_${service}`] : []));
      if (!database) continue;
      const { jobs, schemas = [], routines = [] } = database;
      for (const schema of [service, ...(jobs ? [JOBS_SCHEMA] : []), ...schemas])
        await tx.query(useSchemaSql(login, schema));
      if (routines.length > 0) await tx.query(callSql(login, routines));
    }
    for (const service of ALL_SERVICES) {
      const { tenants, roleRoutines = [] } = SERVICES[service].database ?? {};
      for (const routine of [...roleRoutines, ...(tenants ? MUTATION_ROUTINES : [])])
        await tx.query(roleCallSql(`svc_${service}`, routine));
    }
    await tx.query(
      actOnTenantsSql(
        ALL_SERVICES.flatMap((service) => {
          const tenants = SERVICES[service].database?.tenants;
          return tenants ? [{ login: loginOf(service), asOwner: tenants === 'owner' }] : [];
        }),
      ),
    );
    await tx.query(ENTER_TENANTS);
  });
}

/**
 * Address of a service's login on the database of `ownerUrl`, with a password that is derived from the owner's: all
 * processes that know the one know the other. null when the owner signs in without a password.
 */
export function derivedUrl(ownerUrl: string, service: ServiceName): string | null {
  const url = new URL(ownerUrl);
  if (url.password === '') return null;
  const login = loginOf(service);
  const key = decodeURIComponent(url.password);
  url.username = login;
  url.password = createHmac('sha256', key).update(`password of ${login}`).digest('base64url');
  return url.href;
}

/** True when no operator has set the login's password. */
export const hasDerivedPassword = (owner: Database, service: ServiceName): Promise<boolean> =>
  owner.login(async (tx) => (await tx.one<{ yes: boolean }>(isDerived(loginOf(service)))).yes);

/**
 * True when the login lacks the password that an operator configured; false also when this account may not read it.
 */
export const lacksPassword = (owner: Database, service: ServiceName): Promise<boolean> =>
  owner.login(async (tx) => {
    if (!(await tx.one<{ yes: boolean }>(MAY_READ_PASSWORDS)).yes) return false;
    return (await tx.one<{ yes: boolean }>(hasLostPassword(loginOf(service)))).yes;
  });

/** Gives the login the password of `url`, which an operator has chosen. */
export async function givePassword(owner: Database, service: ServiceName, url: string): Promise<void> {
  const login = loginOf(service);
  const known = await canSignIn(url);
  await oneByOne(owner, async (tx) => {
    if (!known) await tx.query(setPasswordSql(login, verifierOf(url)));
    if ((await tx.one<{ yes: boolean }>(isDerived(login))).yes) await tx.query(markDerivedSql(login, false));
  });
}

/**
 * Gives the login the password of `url`, which is derived from the owner's. Throws when an operator has given it
 * another: running processes sign in with that. `exclusive`: the server is ours alone, so that there is no such
 * operator.
 */
export async function derivePassword(
  owner: Database,
  service: ServiceName,
  url: string,
  exclusive: boolean,
): Promise<void> {
  if (await canSignIn(url)) return;
  const login = loginOf(service);
  await oneByOne(owner, async (tx) => {
    if (!exclusive && !(await tx.one<{ yes: boolean }>(isDerived(login))).yes)
      throw new ConfigError(
        `${login} has a password of its own, which DATABASE_URL alone does not replace: set ` +
          `${databaseVariable(service)} to its address.`,
      );
    await tx.query(setPasswordSql(login, verifierOf(url)));
    await tx.query(markDerivedSql(login, true));
  });
}

/** True when the server accepts an address's login and password. */
export async function canSignIn(url: string): Promise<boolean> {
  const client = new PageClient({ connectionString: url, application_name: 'erp sign-in' });
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (sqlState(error)?.startsWith('28')) return false;
    // A login without a password: the server asks for one that it cannot check.
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}

const SCRAM_ITERATIONS = 4_096;

/** PostgreSQL's stored form of an address's password (RFC 5803). */
function verifierOf(url: string): string {
  const password = decodeURIComponent(new URL(url).password);
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, SCRAM_ITERATIONS, 32, 'sha256');
  const keyOf = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  const server = keyOf('Server Key').toString('base64');
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}
