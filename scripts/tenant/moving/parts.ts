/**
 * Everything that the database holds for a tenant beside its records: what of it is moved, and what stays behind. A test
 * compares the two lists with the tables that there are. Source: docs/reference/moving-tenants.md#what-is-in-the-file.
 */

export interface Part {
  readonly name: string;
  /** In the schema of the tenant, or with the name of a service in front. */
  readonly table: string;
  /** `trail`: what happened; `setup`: also in a copy without records; `records`: in a copy with records. */
  readonly group: 'trail' | 'setup' | 'records';
  /** Columns that the database gives anew. */
  readonly omit?: readonly string[];
  /** SQL over the rows `t` that are moved; {objects} is the list of the objects of the configuration. */
  readonly where?: string;
  readonly order?: string;
  /** SQL over the row `r` of the file, by column: what is stored instead. */
  readonly stored?: Readonly<Record<string, string>>;
  /** There is one row already, in whose place it comes. */
  readonly replaces?: true;
  /** Hashes over rows that name users. */
  readonly sealed?: true;
  /** Refers to what auth knows of users. */
  readonly ofCredentials?: true;
}

const OF_OBJECTS = 't.object = ANY ({objects})';

/** In the order in which they travel, behind the records. */
export const PARTS: readonly Part[] = [
  { name: 'shares', table: '_shares', group: 'records', omit: ['tx'], where: OF_OBJECTS },
  { name: 'recycle-bin', table: '_recycle_bin', group: 'trail', where: OF_OBJECTS },
  { name: 'trail/history', table: '_history', group: 'trail' },
  { name: 'trail/audit', table: '_audit', group: 'trail', omit: ['tx'] },
  { name: 'trail/chain', table: '_audit_chain', group: 'trail', sealed: true },
  // The snapshot and the server belong to the database in which it was sealed.
  {
    name: 'trail/head',
    table: '_audit_head',
    group: 'trail',
    omit: ['snapshot', 'server'],
    replaces: true,
    sealed: true,
  },
  {
    name: 'versions',
    table: 'metadata.versions',
    group: 'trail',
    // The present one is made by the import.
    where: 't.version < (SELECT metadata_version FROM metadata.tenants WHERE id = t.tenant_id)',
  },
  {
    name: 'deployments',
    table: 'metadata.deployments',
    group: 'trail',
    omit: ['queue_number', 'lease_token', 'lease_until', 'worker'],
    where: "t.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')",
    order: 't.queue_number',
    // They are shown, and cannot be rolled back: what they have deleted does not travel.
    stored: { forgotten: 'true', files: "'{}'::json", inverse_plan: 'NULL' },
  },
  // Subject at an OpenID provider: no secret, and it prevents confusion with others of the same address.
  { name: 'identities', table: 'auth.identities', group: 'trail', ofCredentials: true },
  { name: 'dashboards', table: 'analytics.dashboards', group: 'setup' },
  { name: 'dashboard-versions', table: 'analytics.dashboard_versions', group: 'setup' },
  { name: 'dashboard-shares', table: 'analytics.dashboard_shares', group: 'setup' },
  { name: 'dashboards-deployed', table: 'analytics.deployed', group: 'setup' },
  {
    name: 'agents/runs',
    table: 'agent.runs',
    group: 'trail',
    // Its grant stays behind.
    stored: {
      status: "CASE WHEN r.status = 'RUNNING' THEN 'CANCELED' ELSE r.status END",
      outcome: "CASE WHEN r.status = 'RUNNING' THEN 'canceled' ELSE r.outcome END",
      ended_at: 'coalesce(r.ended_at, now())',
    },
  },
  { name: 'agents/steps', table: 'agent.steps', group: 'trail' },
  {
    name: 'agents/approvals',
    table: 'agent.approvals',
    group: 'trail',
    stored: { status: "CASE WHEN r.status IN ('PENDING', 'APPROVED') THEN 'CANCELED' ELSE r.status END" },
  },
  { name: 'agents/decisions', table: 'agent.decisions', group: 'trail' },
  // A copy is not provisioned by the clients of the original.
  { name: 'provisioning/external-ids', table: '_external_ids', group: 'trail' },
  { name: 'provisioning/deleted-users', table: '_deprovisioned_users', group: 'trail' },
];

/** Tables that are written otherwise: from the head, the files or the records. */
export const MADE: readonly string[] = [
  'metadata.tenants',
  'metadata.components',
  'metadata.snapshots',
  'auth.domains',
  'auth.credentials',
  '_state',
  '_epoch',
];

/** Tables of which nothing is moved, each for a reason that the documents give. */
export const LEFT_BEHIND: readonly string[] = [
  'agent.days',
  'metadata.deleted_components',
  'metadata.version_components',
  'auth.address_links',
  'auth.audit_entries',
  'auth.authenticators',
  'auth.client_secrets',
  'auth.deprecated_uses',
  'auth.grants',
  'auth.known_origins',
  'auth.mails',
  'auth.passkeys',
  'auth.password_links',
  'auth.provider_secrets',
  'auth.recovery_codes',
  'auth.tenant_origins',
  '_confirmations',
  '_idempotency',
  '_outbox',
  '_revoked_shares',
];
