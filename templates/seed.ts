/**
 * The demo tenants, made with the platform's own means: metadata creates the tenant and deploys the template, data
 * creates the users and loads the sample records, auth keeps the passwords. Every step may run twice, so a start that
 * was killed half way is finished by the next one; finished steps are remembered, so that later starts cost one query.
 * Changes that people have made to a demo tenant are kept: a newer template that conflicts with them is not deployed, and
 * the platform starts with the older one.
 */

import { scryptSync } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceBroker } from 'moleculer';
import type { Config } from '../config/env.ts';
import { type ActionMap, call } from '../contracts/call.ts';
import { tenantSchema } from '../lib/context.ts';
import { messageOf } from '../lib/errors/thrown.ts';
import { membersOf } from '../lib/json/objects.ts';
import { identifier } from '../lib/values/sql-text.ts';
import { Database } from '../mixins/database/database.ts';
import { usedInProduction } from '../mixins/database/installation.ts';
import { ownerRole } from '../mixins/database/roles.ts';
import { fingerprint, templateFiles } from './read.ts';
import { generateSamples } from './samples/generate.ts';
import type { SampleSize } from './samples/workbook.ts';

export { templateFiles };

interface DemoUser {
  readonly username: string;
  readonly displayName: string;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly managerUsername: string | null;
  readonly permissionSetApiNames: string[];
}

interface DemoTenant {
  readonly key: string;
  readonly name: string;
  readonly locale: string;
  readonly timezone: string;
  readonly currency: string;
  /** In an order in which managers come first. */
  readonly users: readonly DemoUser[];
  readonly samples: SampleSize;
  /** Owners of the sample records, each with a weight. */
  readonly owners: readonly (readonly [username: string, weight: number])[];
}

const user = (
  username: string,
  displayName: string,
  profileApiName: string,
  roleApiName: string | null,
  managerUsername: string | null,
  permissionSetApiNames: string[] = [],
): DemoUser => ({ username, displayName, profileApiName, roleApiName, managerUsername, permissionSetApiNames });

export const DEMO_TENANTS: readonly DemoTenant[] = [
  {
    key: 'demo',
    name: 'Northwind Office GmbH',
    locale: 'en',
    timezone: 'Europe/Berlin',
    currency: 'EUR',
    users: [
      user('ada@demo.example', 'Ada Lindqvist', 'Administrator', 'Ceo', null, ['OrderDesk']),
      user('mia@demo.example', 'Mia Hartmann', 'SalesManager', 'SalesManager', 'ada@demo.example'),
      user('sam@demo.example', 'Sam Keller', 'SalesRep', 'SalesRep', 'mia@demo.example'),
      user('sue@demo.example', 'Sue Bennett', 'SalesRep', 'SalesRep', 'mia@demo.example'),
      user('fay@demo.example', 'Fay Lindner', 'Accountant', 'Finance', 'ada@demo.example'),
      user('pat@demo.example', 'Pat Moreau', 'Minimal', null, 'ada@demo.example'),
    ],
    samples: { set: 0, accounts: 600, contacts: 1_200, orders: 5_000, opportunities: 300 },
    owners: [
      ['mia@demo.example', 1],
      ['sam@demo.example', 5],
      ['sue@demo.example', 4],
    ],
  },
  {
    key: 'acme',
    name: 'Acme Interiors Inc.',
    locale: 'en-US',
    timezone: 'America/Chicago',
    currency: 'USD',
    users: [user('eve@acme.example', 'Eve Carter', 'Administrator', 'Ceo', null, ['OrderDesk'])],
    samples: { set: 1, accounts: 40, contacts: 80, orders: 150, opportunities: 20, countries: ['US', 'CA'] },
    owners: [['eve@acme.example', 1]],
  },
];

/** In which the usernames of a demo tenant are. */
const domainOf = ({ key }: DemoTenant): string => `${key}.example`;

const LOCK = 7_164_002;
/** Bytes of rows in one call; NATS carries one megabyte. */
const BATCH_BYTES = 400_000;
const SERVICES = ['auth', 'data', 'metadata'];
const SERVICES_WAIT_MS = 120_000;
const CALL_TIMEOUT_MS = 120_000;
const ATTEMPTS_MAX = 5;
const AGAIN_AFTER_MS = 1_000;

/** Raise it when the generated records change, so that existing instances get the new ones as well. */
const SAMPLES_EDITION = '2';

/** Steps of one tenant in their order; the value changes when the step has to be done again. */
type Steps = Readonly<Record<'domain' | 'template' | 'users' | 'samples', string>>;

/**
 * Creates and fills the demo tenants where that has not been done. Only one process of a cluster works at a time.
 * Throws what a step throws; the next start goes on where it stopped. Never in
 * production, nor in a database that production uses. `done` is called with each part that was not there before.
 */
export async function seedDemo(
  broker: ServiceBroker,
  config: Config,
  database: Database,
  done: (part: string) => void = () => {},
): Promise<void> {
  if (config.production || (await usedInProduction(database))) return;
  const files = await templateFiles('erp');
  const passwordMark = scryptSync(config.demoPassword, 'demo users', 16, { N: 4_096 }).toString('hex');
  const steps = (tenant: DemoTenant): Steps => ({
    domain: domainOf(tenant),
    template: fingerprint(files),
    users: fingerprint({ users: JSON.stringify(tenant.users), password: passwordMark }),
    samples: fingerprint({ size: JSON.stringify(tenant.samples), edition: SAMPLES_EDITION }),
  });
  if (await allDone(database, steps)) return;

  await broker.waitForServices(SERVICES, SERVICES_WAIT_MS);
  // The lock needs a connection of its own for as long as the work takes.
  const keeper = new Database(database.url, { size: 1, applicationName: 'erp seed' });
  try {
    await keeper.transaction(async (tx) => {
      for (const name of ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'])
        await tx.query(`SET LOCAL ${name} = 0`);
      await tx.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
      for (const tenant of DEMO_TENANTS) {
        const seeding = { broker, config, database, tenant };
        await seedTenant(seeding, files, steps(tenant), done);
      }
    });
  } finally {
    await keeper.close();
  }
}

/** State shared by the steps of one tenant. */
interface Seeding {
  readonly broker: ServiceBroker;
  readonly config: Config;
  readonly database: Database;
  readonly tenant: DemoTenant;
  readonly tenantId: string;
}

async function seedTenant(
  { broker, config, database, tenant }: Omit<Seeding, 'tenantId'>,
  files: Record<string, string>,
  steps: Steps,
  ended: (part: string) => void,
): Promise<void> {
  const done = await doneSteps(database, tenant.key);
  const step = async (name: keyof Steps, work: () => Promise<string>): Promise<void> => {
    if (done.get(name) === steps[name]) return;
    const started = performance.now();
    const what = await work();
    await database.query(
      `INSERT INTO seed.steps (tenant, step, fingerprint) VALUES ($1, $2, $3)
       ON CONFLICT (tenant, step) DO UPDATE SET fingerprint = excluded.fingerprint, done_at = now()`,
      [tenant.key, name, steps[name]],
    );
    broker.logger.info(`Demo tenant ${tenant.key}: ${what} (${Math.round(performance.now() - started)} ms).`);
  };
  const { key, name, locale, timezone, currency } = tenant;
  const { tenantId } = await insist(broker, 'metadata.tenants.create', {
    key,
    name,
    template: 'erp',
    locale,
    timezone,
    currency,
  });
  await step('domain', async () => {
    const { domain } = await insist(broker, 'auth.domains.add', { tenantId, domain: domainOf(tenant) });
    return `usernames in ${domain}`;
  });
  const seeding: Seeding = { broker, config, database, tenant, tenantId };
  try {
    await step('template', async () => {
      // A new tenant has it already; one of an older version of the template gets what has changed since.
      const { changes } = await insist(broker, 'metadata.templates.deploy', { tenantId, files });
      return `template deployed, ${changes} changes since the tenant was created`;
    });
  } catch (error) {
    const blocked = blockedBy(error);
    // A template that cannot even be deployed to a new tenant is a mistake of ours.
    if (!blocked || !done.has('template')) throw error;
    broker.logger.warn(
      `Demo tenant ${key} keeps its present template until these problems are solved before a start: ${blocked}`,
    );
    return; // users and samples are those of the newer template
  }
  let userIds: Record<string, string> | undefined;
  await step('users', async () => {
    userIds = await provisionUsers(seeding);
    return `${tenant.users.length} users`;
  });
  ended(`tenant ${key}`);
  await step('samples', async () => {
    const inserted = await loadSamples(seeding, userIds ?? (await provisionUsers(seeding)));
    return `${inserted} sample records`;
  });
  ended(`demo data ${key}`);
}

/** Conflicts of a tenant's own components with the template; null for any other failure. */
function blockedBy(error: unknown): string | null {
  const { code, details } = membersOf(error);
  if (code !== 'METADATA_INVALID') return null;
  const { blocked } = membersOf(details);
  const problems = Array.isArray(blocked) ? blocked.map(membersOf) : [];
  return problems.map(({ type, fullName, message }) => `${type} ${fullName}: ${message}`).join(' ');
}

/** The users' ids by name. */
async function provisionUsers({ broker, config, tenant, tenantId }: Seeding): Promise<Record<string, string>> {
  const users = tenant.users.map((u) => ({ ...u, email: u.username, password: config.demoPassword }));
  return (await insist(broker, 'data.users.provision', { tenantId, users })).userIds;
}

/**
 * When the tenant was created, which its id, a UUIDv7, begins with. Sample records follow it and not the clock, so that a
 * load which goes on in another week goes on with the same records.
 */
const createdAtOf = (tenantId: string): number => Number.parseInt(tenantId.replace('-', '').slice(0, 12), 16);

/** Returns how many records were not there yet. */
async function loadSamples(seeding: Seeding, userIds: Record<string, string>): Promise<number> {
  const { broker, database, tenant, tenantId } = seeding;
  const owners = tenant.owners.map(([username, weight]): readonly [string, number] => {
    const id = userIds[username];
    if (id === undefined) throw new Error(`The demo user ${username}, who owns sample records, was not created.`);
    return [id, weight];
  });
  let inserted = 0;
  const tables = generateSamples(tenant.samples, owners, createdAtOf(tenantId));
  for (const { objectApiName, columns, rows } of tables) {
    const size = Math.max(1, Math.floor(BATCH_BYTES / JSON.stringify(rows[0]).length));
    for (let from = 0; from < rows.length; from += size) {
      const batch = rows.slice(from, from + size).map((row) => [...row]);
      const params = { tenantId, objectApiName, columns: [...columns], rows: batch };
      inserted += (await insist(broker, 'data.samples.load', params)).inserted;
    }
  }
  // So that the first queries are planned with real numbers instead of guesses.
  await database.session(ownerRole(tenantId), (tx) =>
    tx.query(`ANALYZE ${tables.map((t) => `${tenantSchema(tenantId)}.${identifier(t.objectApiName)}`).join(', ')}`),
  );
  return inserted;
}

/** Repeats a call whose answer was lost: processes that start together may be slow, or be replaced. */
async function insist<K extends keyof ActionMap>(
  broker: ServiceBroker,
  action: K,
  params: ActionMap[K]['params'],
): Promise<ActionMap[K]['result']> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(broker, action, params, { timeout: CALL_TIMEOUT_MS });
    } catch (error) {
      if (!membersOf(error)['retryable'] || attempt === ATTEMPTS_MAX) throw error;
      broker.logger.warn(`A step of the demo tenants failed and is tried again: ${messageOf(error)}`);
      await pause(AGAIN_AFTER_MS);
      await broker.waitForServices(SERVICES, SERVICES_WAIT_MS);
    }
  }
}

async function doneSteps(database: Database, tenantKey: string): Promise<Map<string, string>> {
  const { rows } = await database.query<{ step: string; fingerprint: string }>(
    'SELECT step, fingerprint FROM seed.steps WHERE tenant = $1',
    [tenantKey],
  );
  return new Map(rows.map((row) => [row.step, row.fingerprint]));
}

async function allDone(database: Database, steps: (tenant: DemoTenant) => Steps): Promise<boolean> {
  for (const tenant of DEMO_TENANTS) {
    const done = await doneSteps(database, tenant.key);
    for (const [name, value] of Object.entries(steps(tenant))) if (done.get(name) !== value) return false;
  }
  return true;
}
