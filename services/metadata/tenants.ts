/** Tenants: creating one with everything it needs, and deploying the platform's templates to it. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type MetadataActions, TENANT_TEMPLATES, type TenantTemplate } from '../../contracts/metadata.ts';
import { tenantSchema } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { TenantInfo } from '../../lib/schema/snapshot.ts';
import { requestId, uuidv7 } from '../../lib/values/ids.ts';
import { isLocale } from '../../lib/values/locale.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import { isTimezone } from '../../lib/values/time.ts';
import { emitYaml } from '../../lib/yaml/emit.ts';
import { type Database, isConnectionError, sqlState, type Tx } from '../../mixins/database/database.ts';
import { ownerRole, serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import { applyPlan, applyPrepared, inOrder } from './apply.ts';
import { COMPILER_VERSION } from './compile.ts';
import { runDataChecks } from './data-checks.ts';
import type { Component, State } from './kinds/component.ts';
import { isCurrency } from './kinds/tenant-settings.ts';
import { makePlan } from './planner/plan.ts';
import { compiledAgain } from './prepare.ts';
import { checkFiles, readProject } from './project/project.ts';
import {
  compiledEarlierSql,
  findTenant,
  insertTenant,
  loadState,
  requireTenant,
  storedRetained,
  type Tenant,
  tenantInfo,
  wasCompiledEarlier,
} from './store.ts';
import { parseComponents } from './stored-state.ts';
import { inCurrency } from './template-currency.ts';

const here = dirname(fileURLToPath(import.meta.url));

interface SchemaFile {
  readonly number: number;
  readonly sql: string;
}

const SCHEMA_FILES: readonly SchemaFile[] = readdirSync(join(here, 'tenant-schema'))
  .filter((name) => /^\d{4}-.*\.sql$/.test(name))
  .sort()
  .map((name) => ({ number: Number(name.slice(0, 4)), sql: readFileSync(join(here, 'tenant-schema', name), 'utf8') }));

/** Version of the schemas of tenants that this version of the platform makes. */
export const NEWEST_SCHEMA = Math.max(...SCHEMA_FILES.map((file) => file.number));

/** The files below a folder of templates, by path. */
export function readTemplate(folder: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && entry.name.endsWith('.yaml')) {
      const path = join(entry.parentPath, entry.name);
      files[path.slice(folder.length + 1)] = readFileSync(path, 'utf8');
    }
  return files;
}

const template = (name: string): Record<string, string> => readTemplate(join(here, '../../templates', name));

const CORE = template('core');
/** The core template's objects and fields stay the platform's; its profiles are the tenant's to change. */
const SYSTEM_TYPES: ReadonlySet<string> = new Set(['CustomObject', 'CustomField']);

type NewTenant = MetadataActions['metadata.tenants.create']['params'];

export const TENANT_KEY_IS = 'a short name such as acme: 2 to 31 lower-case letters and digits, a letter first';

export const isTenantKey = (key: unknown): key is string =>
  typeof key === 'string' && /^[a-z][a-z0-9]{1,30}$/.test(key);

const TENANT_NAME_MAX_CHARS = 200;
export const TENANT_NAME_IS = `a name of ${TENANT_NAME_MAX_CHARS} characters at most, without line breaks`;

/** A text that says something, on one line. */
export const isLine = (text: unknown, maxChars: number): text is string =>
  typeof text === 'string' &&
  text.length <= maxChars &&
  text.trim() !== '' &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a line must not have
  !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text);

export const isTenantName = (name: unknown): name is string => isLine(name, TENANT_NAME_MAX_CHARS);

function checkNewTenant(given: NewTenant): void {
  const wrong: [keyof NewTenant, boolean, string][] = [
    ['key', isTenantKey(given.key), TENANT_KEY_IS],
    ['name', isTenantName(given.name), TENANT_NAME_IS],
    [
      'template',
      given.template === undefined || TENANT_TEMPLATES.includes(given.template),
      `one of ${TENANT_TEMPLATES.join(', ')}`,
    ],
    ['locale', given.locale === undefined || isLocale(given.locale), 'a language tag such as en-US'],
    ['timezone', given.timezone === undefined || isTimezone(given.timezone), 'a time zone such as Europe/Berlin'],
    ['currency', given.currency === undefined || isCurrency(given.currency), 'a currency code such as EUR'],
  ];
  const errors = wrong
    .filter(([, ok]) => !ok)
    .map(([name, , what]) => violation(`/${name}`, 'PARAMETER_INVALID', `${name} must be ${what}.`));
  // A console shows the message alone.
  const message = ['The tenant cannot be created.', ...errors.map((error) => error.message)].join(' ');
  if (errors.length > 0) throw new PlatformError('PARAMETER_INVALID', message, { errors });
}

export const platformActor = () => ({ userId: null, clientId: null, agentRunId: null, requestId: requestId() });

/**
 * DDL waits for readers only for a while, and a deployment may take longer than a request. Where a process stops in
 * the middle, its locks block others only briefly.
 */
export const DDL_LIMITS =
  "SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '10min'; SET LOCAL idle_in_transaction_session_timeout = '15s'";

const DEFAULT_TEMPLATE: TenantTemplate = 'erp';
const isDeployed = (name: TenantTemplate = 'empty'): boolean => name !== 'empty';

/**
 * Creates a tenant and deploys its template. A process that dies between the two leaves a tenant that says so, and the
 * same call finishes it; `changed` is called when a version was made.
 */
export async function createWithTemplate(
  database: Database,
  region: string,
  params: NewTenant,
  changed: (tenantId: string, metadataVersion: number) => void,
): Promise<{ tenantId: string; created: boolean }> {
  const given = { ...params, template: params.template ?? DEFAULT_TEMPLATE };
  const { tenant, created } = await createTenant(database, region, given);
  const { pending } = await database.shared('metadata', null, (tx) =>
    tx.one<{ pending: boolean }>(TEMPLATE(tenant.id)),
  );
  if (pending && isDeployed(given.template)) {
    const files = inCurrency(template(given.template), tenant.currency);
    const { applied, metadataVersion } = await deployTemplate(database, tenant.id, files, (tx) =>
      tx.query(TEMPLATE_DEPLOYED(tenant.id)),
    );
    if (applied) changed(tenant.id, metadataVersion);
  }
  return { tenantId: tenant.id, created };
}

const TEMPLATE = (tenantId: string): Statement => ({
  text: 'SELECT template_pending AS pending FROM metadata.tenants WHERE id = $1',
  values: [tenantId],
});

const TEMPLATE_DEPLOYED = (tenantId: string): Statement => ({
  text: 'UPDATE metadata.tenants SET template_pending = false WHERE id = $1',
  values: [tenantId],
});

/** Throws PARAMETER_INVALID when the tenant was created with something else: it is another company's. */
async function sameTenant(database: Database, tenant: Tenant, given: NewTenant): Promise<Tenant> {
  const { created } = await database.shared('metadata', null, (tx) =>
    tx.one<{ created: Record<string, unknown> }>({
      text: 'SELECT created_as AS created FROM metadata.tenants WHERE id = $1',
      values: [tenant.id],
    }),
  );
  const other = Object.entries(given).filter(
    ([name, value]) => value !== undefined && created[name] !== undefined && created[name] !== value,
  );
  if (other.length === 0) return tenant;
  const errors = other.map(([name]) =>
    violation(`/${name}`, 'PARAMETER_INVALID', `${name} was ${JSON.stringify(created[name])} when it was created.`),
  );
  const message = [`There is a tenant ${tenant.key} already.`, ...errors.map((error) => error.message)].join(' ');
  throw new PlatformError('PARAMETER_INVALID', message, { errors });
}

/**
 * Creates a tenant, its schema, role and core configuration in one transaction; its template is still to be deployed.
 * Idempotent by key.
 */
export async function createTenant(
  database: Database,
  region: string,
  given: NewTenant,
): Promise<{ tenant: Tenant; created: boolean }> {
  checkNewTenant(given);
  const existing = await database.shared('metadata', null, (tx) => findTenant(tx, { key: given.key }));
  if (existing) return { tenant: await sameTenant(database, existing, given), created: false };
  const info: TenantInfo = {
    id: uuidv7(),
    key: given.key,
    name: given.name,
    region: given.region ?? region,
    edition: given.edition ?? 'standard',
    sandbox: given.sandbox ?? false,
    locale: given.locale ?? 'en-US',
    timezone: given.timezone ?? 'UTC',
    currency: given.currency ?? 'EUR',
    rateLimits: { connection: null, tenant: null, daily: null, concurrency: null },
  };
  const settings = emitYaml({
    type: 'TenantSettings',
    apiName: 'General',
    locale: info.locale,
    timezone: info.timezone,
    currency: info.currency,
  });
  const project = await readProject({ ...CORE, 'settings/General.yaml': settings }, null, { template: true });
  const outcome = await database.transaction(async (tx) => {
    await tx.query(DDL_LIMITS);
    const tenant = await insertTenant(tx, info, { createdAs: given, templatePending: isDeployed(given.template) });
    if (tenant.id !== info.id) return { tenant, created: false };
    await tx.query('SELECT metadata.create_tenant_schema($1)', [info.id]);
    await inOrder([tx.actAs(ownerRole(info.id)), tx.query(companionsSql(info.id))]);
    const before = new Map<string, Component>();
    const plan = makePlan(before, project, { platform: true, allowDestructiveChanges: false });
    if (plan.blocked.length > 0) throw blockedError(plan.blocked);
    const applied = await applyPlan(tx, tenant, before, plan, {
      actor: platformActor(),
      deploymentId: null,
      systemTypes: SYSTEM_TYPES,
    });
    await upgradeSchema(tx, info.id, 1);
    return { tenant: { ...tenant, metadataVersion: applied?.version ?? 0 }, created: true };
  });
  // Another call was faster with this key.
  return outcome.created ? outcome : { tenant: await sameTenant(database, outcome.tenant, given), created: false };
}

/** Creates the companions of a new tenant, as the owner of its schema. */
export const companionsSql = (tenantId: string): string => schemaSql(tenantId, SCHEMA_FILES.slice(0, 1));

const schemaSql = (tenantId: string, files: readonly SchemaFile[]): string =>
  [
    `SET LOCAL search_path = ${identifier(tenantSchema(tenantId))}, public`,
    ...files.map((file) => file.sql),
    'RESET search_path',
  ].join(';\n');

/** A newer version of the platform may have been here before. */
const UPDATED_SCHEMA = `
  UPDATE metadata.tenants SET tenant_schema_version = greatest(tenant_schema_version, $2) WHERE id = $1`;

/** Runs the files of tenant-schema that this tenant has not seen, as the owner of its schema. */
export async function upgradeSchema(tx: Tx, tenantId: string, from: number): Promise<void> {
  const files = SCHEMA_FILES.filter((file) => file.number > from);
  const running: Promise<unknown>[] = [];
  if (files.length > 0) running.push(tx.actAs(ownerRole(tenantId)), tx.query(schemaSql(tenantId, files)));
  running.push(tx.actAs(serviceRole('metadata', tenantId)), tx.query(UPDATED_SCHEMA, [tenantId, NEWEST_SCHEMA]));
  await inOrder(running);
}

/** Tenants whose schema is of an earlier version, or whose configuration was compiled by one. */
const OUTDATED_TENANTS = `
  SELECT tenant.id, tenant.key FROM metadata.tenants tenant
  WHERE tenant.erasing_since IS NULL AND (tenant.tenant_schema_version < $1 OR ${compiledEarlierSql('$2')})
  ORDER BY tenant.id`;

interface TenantUpgrades {
  /** One tenant could not be brought up to date; the others go on. Without it the error is thrown. */
  readonly failed?: (tenant: { readonly id: string; readonly key: string }, error: unknown) => void;
  /** Called after each tenant, with how many are behind. */
  readonly progress?: (done: number, all: number) => void;
  /** The configuration of a tenant was compiled again, and has a new version. */
  readonly changed?: (tenantId: string, metadataVersion: number) => void;
}

/**
 * Brings the schemas of tenants that an older version of the platform made up to date, each in a transaction of its own,
 * and answers how many. Safe while the platform works on them, and where several processes do it; what was interrupted
 * is carried on by the next call.
 */
export async function upgradeTenants(database: Database, options: TenantUpgrades = {}): Promise<number> {
  const { rows } = await database.query<{ id: string; key: string }>(OUTDATED_TENANTS, [
    NEWEST_SCHEMA,
    COMPILER_VERSION,
  ]);
  let upgraded = 0;
  for (const [index, tenant] of rows.entries()) {
    try {
      await retryLocked(() => database.transaction((tx) => upgradeTenant(tx, tenant.id)));
      const version = await renewSnapshot(database, tenant.id);
      if (version !== null) options.changed?.(tenant.id, version);
      upgraded++;
    } catch (error) {
      // Without the database no other tenant would fare better.
      if (!options.failed || isConnectionError(error)) throw error;
      options.failed(tenant, error);
    }
    options.progress?.(index + 1, rows.length);
  }
  return upgraded;
}

/** Locks `_state` first, as every change of a tenant's configuration does. */
async function upgradeTenant(tx: Tx, tenantId: string): Promise<void> {
  await tx.query(DDL_LIMITS);
  tx.actAs(ownerRole(tenantId));
  await tx.query(`SELECT FROM ${tx.schema}._state FOR UPDATE`);
  tx.actAs(serviceRole('metadata', tenantId));
  const { version } = await tx.one<{ version: number }>({
    text: 'SELECT tenant_schema_version AS version FROM metadata.tenants WHERE id = $1 FOR UPDATE',
    values: [tenantId],
  });
  await upgradeSchema(tx, tenantId, version);
}

/**
 * Compiles a configuration again that a process of an earlier version compiled, without the parts that it does not know.
 * Returns the new version, or null when the compiled one is current.
 */
const renewSnapshot = (database: Database, tenantId: string): Promise<number | null> =>
  inConfiguration(database, tenantId, async (tx) => {
    await tx.query(DDL_LIMITS);
    const { tenant, before } = await lockTenant(tx, tenantId);
    if (!(await wasCompiledEarlier(tx, tenantId, COMPILER_VERSION))) return null;
    const prepared = compiledAgain(tenantInfo(tenant), tenant.metadataVersion + 1, before);
    await applyPrepared(tx, tenantId, prepared, { actor: platformActor(), deploymentId: null });
    return prepared.version;
  });

export const blockedError = (blocked: readonly object[]): PlatformError =>
  new PlatformError(
    'METADATA_INVALID',
    `The plan is blocked by ${blocked.length === 1 ? '1 problem' : `${blocked.length} problems`}.`,
    {
      details: { blocked: blocked.slice(0, 100) },
    },
  );

/** Deploys a project with the platform as the actor. Throws METADATA_INVALID with the problems when it is blocked. */
export async function deployTemplate(
  database: Database,
  tenantId: string,
  files: Record<string, string>,
  /** In the same transaction, as metadata. */
  also?: (tx: Tx) => Promise<unknown>,
): Promise<{ metadataVersion: number; changes: number; applied: boolean }> {
  checkFiles(files);
  const project = await readProject(files, null, { template: true });
  return inConfiguration(database, tenantId, async (tx) => {
    const limited = tx.query(DDL_LIMITS);
    const { tenant, before, retained } = await lockTenant(tx, tenantId);
    await limited;
    const draft = makePlan(before, project, { platform: true, allowDestructiveChanges: false, retained });
    tx.actAs(ownerRole(tenantId));
    const plan = await runDataChecks(tx, tx.schema, draft, before);
    if (plan.blocked.length > 0) throw blockedError(plan.blocked);
    const applied = await applyPlan(tx, tenant, before, plan, { actor: platformActor(), deploymentId: null });
    tx.actAs(serviceRole('metadata', tenantId));
    await also?.(tx);
    return {
      metadataVersion: applied?.version ?? tenant.metadataVersion,
      changes: plan.changed.length,
      applied: applied !== null,
    };
  });
}

/**
 * The tenant, with `_state` locked, which every change of its configuration takes first. The first thing that a write of
 * records locks is that table as well, and with it its row: before the tables of its records, of which a statement takes
 * hold as soon as it is parsed. So writers wait here with nothing in their hands, and the two never wait for each other
 * in a cycle. The lock of the table, other than that of its row, is also given in turn: writers that keep coming cannot
 * keep a deployment out. Readers of the row pass.
 */
export async function lockConfiguration(tx: Tx, tenantId: string): Promise<Tenant> {
  tx.actAs(tenantRole(tenantId));
  const locked = tx.query(`LOCK TABLE ${tx.schema}._state IN EXCLUSIVE MODE`);
  tx.actAs(serviceRole('metadata', tenantId));
  const tenant = requireTenant(tx, tenantId);
  await inOrder([locked, tenant, requireCurrentSchema(tx, tenantId)]);
  return tenant;
}

/** The same with the components of the tenant, and with the deleted ones that are kept. */
export async function lockTenant(
  tx: Tx,
  tenantId: string,
): Promise<{ tenant: Tenant; before: Map<string, Component>; retained: State }> {
  const tenant = await lockConfiguration(tx, tenantId);
  const before = await loadState(tx, tenantId);
  return { tenant, before, retained: parseComponents(await storedRetained(tx, tenantId)) };
}

/** The schema was created by a process of an earlier version. */
class OutdatedSchema extends Error {}

/** Throws when the schema must be upgraded first. Runs as the role of the service. */
export async function requireCurrentSchema(tx: Tx, tenantId: string): Promise<void> {
  const { outdated } = await tx.one<{ outdated: boolean }>({
    text: 'SELECT tenant_schema_version < $2 AS outdated FROM metadata.tenants WHERE id = $1',
    values: [tenantId, NEWEST_SCHEMA],
  });
  if (outdated) throw new OutdatedSchema(`The schema of the tenant ${tenantId} is of an earlier version.`);
}

/**
 * A transaction on the configuration of a tenant, repeated when it could not get its locks. A tenant that a process of an
 * earlier version created during a rolling upgrade is upgraded first, in a transaction of its own. `signal`: stops the
 * repetition.
 */
export function inConfiguration<T>(
  database: Database,
  tenantId: string,
  work: (tx: Tx) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return retryLocked(async () => {
    try {
      return await database.shared('metadata', tenantId, work);
    } catch (error) {
      if (!(error instanceof OutdatedSchema)) throw error;
    }
    await database.transaction((tx) => upgradeTenant(tx, tenantId));
    return database.shared('metadata', tenantId, work);
  }, signal);
}

const LOCK_ATTEMPTS = 10;

/** Repeats work that could not get its locks: readers are never made to wait behind DDL for long. */
export async function retryLocked<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (error) {
      const passes = error instanceof OutdatedSchema || ['55P03', '40P01', '40001'].includes(sqlState(error) ?? '');
      if (attempt === LOCK_ATTEMPTS || !passes) throw error;
      await pause(Math.min(100 * 2 ** attempt, 3_000), undefined, signal ? { signal } : {}).catch(() => {});
    }
}
