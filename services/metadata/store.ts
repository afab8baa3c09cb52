/** Everything that metadata asks of PostgreSQL, as functions of a connection. */
import { Op } from 'sequelize';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { RateLimitOverrides, TenantInfo } from '../../lib/schema/snapshot.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import { randomRest, timeOrderedIdSql } from '../../mixins/database/time-ordered-id.ts';
import { on } from '../../mixins/models/sequelize.ts';
import { deleteComponentsSql, forgetDeletedSql } from './deleted.sql.ts';
import { eventStatement } from './event.sql.ts';
import type { Component } from './kinds/component.ts';
import { componentKey } from './kinds/component.ts';
import { TenantModel } from './models/tenant.ts';
import { INDEX_GENERATION } from './physical/indexes.ts';
import type { PreparedCommit } from './prepare.ts';
import type { StoredState } from './stored-state.ts';

export interface Tenant extends TenantInfo {
  readonly suspended: boolean;
  readonly metadataVersion: number;
  /** Limits that the operator set instead of the deployment's. */
  readonly operatorLimits: RateLimitOverrides;
}

const TENANT = [
  'id',
  'key',
  'name',
  'region',
  'edition',
  'sandbox',
  'locale',
  'timezone',
  'currency',
  'rateLimits',
  'suspended',
  'metadataVersion',
  'operatorLimits',
];

export const tenantInfo = ({ suspended: _s, metadataVersion: _m, operatorLimits: _o, ...info }: Tenant): TenantInfo =>
  info;

/** One that is being erased is not there any more. */
export function findTenant(tx: Tx, by: { id: string } | { key: string }): Promise<Tenant | null> {
  return TenantModel.findOne({ attributes: TENANT, where: { ...by, erasingSince: null }, ...on(tx) });
}

/** The tenant with this id, which a token or a job names. */
export async function requireTenant(tx: Tx, id: string): Promise<Tenant> {
  const tenant = await findTenant(tx, { id });
  if (!tenant) throw new PlatformError('INTERNAL_ERROR', `The tenant ${id} does not exist.`);
  return tenant;
}

export function listTenants(tx: Tx, after: string | null, take: number): Promise<Tenant[]> {
  const where = { erasingSince: null, ...(after === null ? {} : { id: { [Op.gt]: after } }) };
  return TenantModel.findAll({ attributes: TENANT, where, order: [['id', 'ASC']], limit: take, ...on(tx) });
}

/** The tenant of this key: a new one, or the one that has the key. Waits for a request that is creating it. */
export async function insertTenant(
  tx: Tx,
  tenant: TenantInfo,
  { createdAs, templatePending }: { createdAs: object; templatePending: boolean } = {
    createdAs: { name: tenant.name },
    templatePending: false,
  },
): Promise<Tenant> {
  const row = { ...tenant, indexGeneration: INDEX_GENERATION, createdAs, templatePending };
  await TenantModel.bulkCreate([row], { ignoreDuplicates: true, ...on(tx) });
  const stored = await findTenant(tx, { key: tenant.key });
  if (!stored) {
    const message = 'A tenant of this key is being erased. Try again when that has ended.';
    throw new PlatformError('PARAMETER_INVALID', message, {
      errors: [violation('/key', 'PARAMETER_INVALID', message)],
    });
  }
  return stored;
}

interface ComponentRow {
  type: string;
  full_name: string;
  path: string;
  yaml: string;
  body: Component['body'];
  hash: string;
  system: boolean;
  changed_at_version: number;
  updated_at: string;
  updated_by_id: string | null;
}

const STORED = `json_build_array(type, full_name, path, yaml, body, hash, system`;

/** The configuration of a tenant, unparsed. */
export function storedState(tx: Tx, tenantId: string): Promise<StoredState> {
  return tx.one<StoredState>({
    text: `SELECT metadata_version AS version, (
        SELECT coalesce(json_agg(${STORED}, changed_at_version, updated_at, updated_by_id)), '[]')::text
        FROM metadata.components WHERE tenant_id = $1) AS components
      FROM metadata.tenants WHERE id = $1`,
    values: [tenantId],
  });
}

/** Kept deleted components, unparsed, in the form of `storedState`. */
export async function storedRetained(tx: Tx, tenantId: string): Promise<string> {
  const { retained } = await tx.one<{ retained: string }>({
    text: `SELECT coalesce(json_agg(${STORED}, deleted_at_version, deleted_at, deleted_by_id)), '[]')::text AS retained
      FROM metadata.deleted_components WHERE tenant_id = $1`,
    values: [tenantId],
  });
  return retained;
}

/** All components of a tenant. */
export async function loadState(tx: Tx, tenantId: string): Promise<Map<string, Component>> {
  const { rows } = await tx.query<ComponentRow>({
    text: `SELECT type, full_name, path, yaml, body, hash, system, changed_at_version, updated_at, updated_by_id
      FROM metadata.components WHERE tenant_id = $1`,
    values: [tenantId],
  });
  const state = new Map<string, Component>();
  for (const row of rows)
    state.set(componentKey(row.type, row.full_name), {
      type: row.type,
      fullName: row.full_name,
      path: row.path,
      yaml: row.yaml,
      body: row.body,
      hash: row.hash,
      system: row.system,
      changedAtVersion: row.changed_at_version,
      updatedAt: formatTimestamp(new Date(row.updated_at)),
      updatedById: row.updated_by_id,
    });
  return state;
}

export interface Commit extends PreparedCommit {
  readonly tenantId: string;
  readonly actor: {
    readonly userId: string | null;
    readonly clientId: string | null;
    readonly agentRunId: string | null;
    readonly requestId: string;
  };
  readonly deploymentId: string | null;
}

/** Snapshots kept per tenant; readers on their way with an older one find it here. */
const SNAPSHOTS_KEPT = 10;

/** Components, snapshot, version, event and audit row of an applied plan. All statements travel together. */
export function writeCommit(tx: Tx, commit: Commit): Promise<unknown>[] {
  return [...writeConfiguration(tx, commit), ...writeTrail(tx, commit)];
}

/** Metadata's record of the commit. */
function writeConfiguration(tx: Tx, commit: Commit): Promise<unknown>[] {
  const { tenantId, version, actor } = commit;
  return [
    tx.actAs(serviceRole('metadata', tenantId)),
    tx.query(deleteComponentsSql(tenantId, commit)),
    tx.query(forgetDeletedSql(tenantId, commit.forgotten)),
    tx.query({
      text: `INSERT INTO metadata.components
        (tenant_id, type, full_name, path, yaml, body, hash, system, changed_at_version, updated_at, updated_by_id)
        SELECT $1, r.type, r.full_name, r.path, r.yaml, r.body, r.hash, r.system, $3, now(), $4
        FROM jsonb_to_recordset($2)
          AS r (type text, full_name text, path text, yaml text, body json, hash text, system boolean)
        ON CONFLICT (tenant_id, type, full_name) DO UPDATE SET
          path = excluded.path, yaml = excluded.yaml, body = excluded.body, hash = excluded.hash,
          system = excluded.system, changed_at_version = excluded.changed_at_version, updated_at = excluded.updated_at,
          updated_by_id = excluded.updated_by_id`,
      values: [tenantId, commit.components, version, actor.userId],
    }),
    tx.query({
      text: `UPDATE metadata.tenants
        SET metadata_version = $2, locale = $3, timezone = $4, currency = $5, rate_limits = $6,
          compiled_version = $2, compiler = $7
        WHERE id = $1`,
      values: [
        tenantId,
        version,
        commit.tenant.locale,
        commit.tenant.timezone,
        commit.tenant.currency,
        JSON.stringify(commit.tenant.rateLimits),
        commit.compiler,
      ],
    }),
    tx.query({
      text: 'INSERT INTO metadata.snapshots (tenant_id, version, bytes) VALUES ($1, $2, $3)',
      values: [tenantId, version, Buffer.from(commit.snapshot)],
    }),
    tx.query({
      text: 'DELETE FROM metadata.snapshots WHERE tenant_id = $1 AND version <= $2',
      values: [tenantId, version - SNAPSHOTS_KEPT],
    }),
    tx.query({
      text: `INSERT INTO metadata.versions (tenant_id, version, deployment_id, made_by_id, changes)
        VALUES ($1, $2, $3, $4, $5)`,
      values: [tenantId, version, commit.deploymentId, actor.userId, commit.changes],
    }),
    tx.query({
      text: `INSERT INTO metadata.version_components (tenant_id, version, type, full_name)
        SELECT $1, $2, type, full_name FROM jsonb_to_recordset($3) AS touched (type text, full_name text)`,
      values: [tenantId, version, commit.touched],
    }),
  ];
}

/** The tenant schema's record of the commit: its version, the event, the audit row. */
function writeTrail(tx: Tx, commit: Commit): Promise<unknown>[] {
  const { version, actor } = commit;
  const data = { metadataVersion: version, deploymentId: commit.deploymentId };
  const entered = tx.actAs(tenantRole(commit.tenantId));
  const { schema } = tx;
  return [
    entered,
    tx.query({
      text: `UPDATE ${schema}._state SET metadata_version = $1, audit_days = $2`,
      values: [version, commit.auditDays],
    }),
    tx.query(eventStatement(schema, 'metadata.schema.changed', actor, data)),
    tx.query({
      text: `INSERT INTO ${schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, request_id, changes)
        VALUES (${timeOrderedIdSql('$1::text')}, $2, $3, $4, 'job', 'metadata.deployments.create', 'committed', $5, $6)`,
      values: [randomRest(), actor.userId, actor.clientId, actor.agentRunId, actor.requestId, commit.summary],
    }),
  ];
}

/** Snapshot of a version, of the newest when `version` is null. */
export async function readSnapshot(
  tx: Tx,
  tenantId: string,
  version: number | null,
): Promise<{ version: number; snapshot: Buffer } | null> {
  const { rows } = await tx.query<{ version: number; bytes: Buffer }>({
    name: 'metadata.snapshot',
    text: `SELECT version, bytes FROM metadata.snapshots WHERE tenant_id = $1 AND ($2::integer IS NULL OR version = $2)
      ORDER BY version DESC LIMIT 1`,
    values: [tenantId, version],
  });
  return rows[0] ? { version: rows[0].version, snapshot: rows[0].bytes } : null;
}

/** True when this version was compiled by an earlier version of the platform and may be incomplete. */
export const wasCompiledEarlier = async (tx: Tx, tenantId: string, compiler: number): Promise<boolean> =>
  (await tx.first({
    text: `SELECT FROM metadata.tenants tenant WHERE id = $1 AND ${compiledEarlierSql('$2')}`,
    values: [tenantId, compiler],
  })) !== null;

/** Of `metadata.tenants tenant`; `compiler`: that of this version. */
export const compiledEarlierSql = (compiler: string): string =>
  `tenant.metadata_version > 0
    AND (tenant.compiled_version <> tenant.metadata_version OR tenant.compiler < ${compiler})`;

export async function currentVersion(tx: Tx, tenantId: string): Promise<number | null> {
  const { rows } = await tx.query<{ metadata_version: number }>({
    name: 'metadata.version',
    text: 'SELECT metadata_version FROM metadata.tenants WHERE id = $1',
    values: [tenantId],
  });
  return rows[0]?.metadata_version ?? null;
}
