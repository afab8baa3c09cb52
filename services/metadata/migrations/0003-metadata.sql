-- The registry of tenants: by it a tenant is found before any tenant is known, so it is not under row-level security.
CREATE TABLE metadata.tenants (
  id                    uuid           PRIMARY KEY,
  key                   text           NOT NULL UNIQUE CHECK (key ~ '^[a-z][a-z0-9]{1,30}$'),
  name                  text           NOT NULL,
  region                text           NOT NULL,
  edition               text           NOT NULL,
  sandbox               boolean        NOT NULL,
  locale                text           NOT NULL,
  timezone              text           NOT NULL,
  currency              text           NOT NULL,
  rate_limits           jsonb          NOT NULL,
  suspended             boolean        NOT NULL DEFAULT false,
  metadata_version      integer        NOT NULL DEFAULT 0,
  -- Number of the newest file of services/metadata/tenant-schema that has run on this tenant's schema.
  tenant_schema_version integer        NOT NULL DEFAULT 0,
  created_at            timestamptz(3) NOT NULL DEFAULT now(),
  -- INDEX_GENERATION of the platform version whose indexes the tenant's tables have. Where it is behind, a metadata process
  -- builds the missing ones without blocking writers.
  index_generation      integer        NOT NULL DEFAULT 0,
  -- Limits set by the operator in place of those of the deployment; null: the deployment's own.
  operator_limits       jsonb          NOT NULL
    DEFAULT '{"connection": null, "tenant": null, "daily": null, "concurrency": null}',
  -- Parameters of its creation: repeating them completes it, different ones are refused.
  created_as            jsonb          NOT NULL DEFAULT '{}',
  -- Its template has not been deployed yet.
  template_pending      boolean        NOT NULL DEFAULT false,
  -- Suspension by an operator. A tenant in deletion counts as suspended with or without these two.
  suspended_at          timestamptz(3),
  suspended_reason      text,
  -- When the erasure is due; once it has begun, the deletion cannot be taken back.
  delete_at             timestamptz(3),
  erasing_since         timestamptz(3),
  -- Version of the configuration that was last compiled, and of the compiler (services/metadata/compile.ts). A snapshot
  -- by an earlier compiler is compiled again.
  compiled_version      integer        NOT NULL DEFAULT 0,
  compiler              integer        NOT NULL DEFAULT 0
);

-- The current configuration of each tenant, one row per component.
CREATE TABLE metadata.components (
  tenant_id          uuid           NOT NULL,
  type               text           NOT NULL,
  full_name          text           NOT NULL,
  path               text           NOT NULL,
  -- Canonical YAML; `body` is its content, `hash` the SHA-256 of its bytes.
  yaml               text           NOT NULL,
  -- json keeps the order of keys, which the canonical form defines.
  body               json           NOT NULL,
  hash               text           NOT NULL,
  -- Shipped with the platform: read-only for tenants.
  system             boolean        NOT NULL DEFAULT false,
  changed_at_version integer        NOT NULL,
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  -- NULL: the platform.
  updated_by_id      uuid,
  PRIMARY KEY (tenant_id, type, full_name)
);

-- Deleted components, kept for rollback. While an object or a field is here, its table or column stays in the schema of
-- the tenant and its name is taken.
CREATE TABLE metadata.deleted_components (
  tenant_id          uuid           NOT NULL,
  type               text           NOT NULL,
  full_name          text           NOT NULL,
  path               text           NOT NULL,
  -- As in metadata.components.
  yaml               text           NOT NULL,
  body               json           NOT NULL,
  hash               text           NOT NULL,
  system             boolean        NOT NULL,
  -- The first version without it.
  deleted_at_version integer        NOT NULL,
  deleted_at         timestamptz(3) NOT NULL DEFAULT now(),
  deleted_by_id      uuid,
  deployment_id      uuid,
  PRIMARY KEY (tenant_id, type, full_name)
);
CREATE INDEX deleted_components_at ON metadata.deleted_components (deleted_at);

-- The compiled configuration that other services read, one immutable document per version.
CREATE TABLE metadata.snapshots (
  tenant_id  uuid           NOT NULL,
  version    integer        NOT NULL,
  bytes      bytea          NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, version)
);

-- The deployment that made each version; NULL: a template of the platform.
CREATE TABLE metadata.versions (
  tenant_id     uuid           NOT NULL,
  version       integer        NOT NULL,
  deployment_id uuid,
  made_by_id    uuid,
  changes       integer        NOT NULL,
  made_at       timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, version)
);

-- The components that each version changed: a deployment can be rolled back only while no later version has changed the
-- same ones.
CREATE TABLE metadata.version_components (
  tenant_id uuid    NOT NULL,
  version   integer NOT NULL,
  type      text    NOT NULL,
  full_name text    NOT NULL,
  PRIMARY KEY (tenant_id, type, full_name, version)
);
CREATE INDEX version_components_version ON metadata.version_components (tenant_id, version);

-- Deployments and recorded validations. Their state is authoritative here; the job queue only wakes workers.
CREATE TABLE metadata.deployments (
  tenant_id                 uuid           NOT NULL,
  deployment_id             uuid           NOT NULL,
  -- Deployments of a tenant are applied in this order.
  queue_number              bigint         GENERATED ALWAYS AS IDENTITY,
  status                    text           NOT NULL DEFAULT 'QUEUED'
    CHECK (status IN ('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING', 'SUCCEEDED', 'FAILED', 'CANCELED')),
  kind                      text           NOT NULL CHECK (kind IN ('deploy', 'validation', 'quickDeploy', 'rollback')),
  check_only                boolean        NOT NULL,
  allow_destructive_changes boolean        NOT NULL,
  base_metadata_version     integer,
  expected_plan_hash        text,
  manifest_hash             text           NOT NULL,
  package                   json           NOT NULL,
  files                     json           NOT NULL,
  created_at                timestamptz(3) NOT NULL DEFAULT now(),
  started_at                timestamptz(3),
  finished_at               timestamptz(3),
  created_by_user_id        uuid           NOT NULL,
  created_by_display_name   text           NOT NULL,
  created_by_client_id      text           NOT NULL,
  created_by_agent_run_id   uuid,
  -- System permissions of the user when the deployment was accepted: a deployment cannot grant others.
  created_by_permissions    text[]         NOT NULL DEFAULT '{}',
  request_id                text           NOT NULL,
  idempotency_key           text           NOT NULL,
  stage                     text           NOT NULL DEFAULT 'queue' CHECK (stage IN ('queue', 'validate', 'apply', 'done')),
  done                      integer        NOT NULL DEFAULT 0,
  total                     integer        NOT NULL DEFAULT 0,
  plan_hash                 text,
  -- {creates, updates, deletes, noops, blocked, warnings} as in the API.
  plan                      json,
  -- Files and deletions that would undo this deployment.
  inverse_plan              json,
  metadata_version_before   integer,
  metadata_version_after    integer,
  error                     jsonb,
  used_by_deployment_id     uuid,
  reverts_deployment_id     uuid,
  reverted_by_deployment_id uuid,
  cancel_requested          boolean        NOT NULL DEFAULT false,
  canceled_by_id            uuid,
  -- The lease of its worker: how often one was taken, the token that the worker's writes must show, and its end.
  takes                     integer        NOT NULL DEFAULT 0,
  lease_token               uuid,
  lease_until               timestamptz,
  cancel_reason             text,
  -- Changed components that cannot be restored: [{type, fullName}].
  irreversible              jsonb          NOT NULL DEFAULT '[]',
  -- Its files, its inverse plan and a large plan have been removed.
  forgotten                 boolean        NOT NULL DEFAULT false,
  -- Holder of the lease: '<generation of the worker>:<lease_token>'.
  worker                    text,
  PRIMARY KEY (tenant_id, deployment_id)
);
CREATE INDEX deployments_open ON metadata.deployments (tenant_id, queue_number)
  WHERE status IN ('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING');
CREATE INDEX deployments_order ON metadata.deployments (tenant_id, queue_number);
CREATE INDEX deployments_kept ON metadata.deployments (tenant_id, queue_number) WHERE NOT forgotten;

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY
    ARRAY['components', 'deleted_components', 'snapshots', 'versions', 'version_components', 'deployments']
  LOOP
    EXECUTE format('ALTER TABLE metadata.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE metadata.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON metadata.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;

-- Workers look for deployments of all tenants that have no worker: the owner and the login of the service see across.
CREATE POLICY directory ON metadata.deployments TO CURRENT_USER USING (true) WITH CHECK (true);

-- During a rolling upgrade, workers of several versions share the database. An earlier worker would mishandle states that
-- only a later one knows, so only workers of this generation take and end deployments. A migration that changes those
-- states replaces the function with the next generation; updates by other workers are then skipped, and they find no work
-- or a lost lease.
CREATE FUNCTION metadata.fence_workers() RETURNS trigger
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    generation text := '1:';
  BEGIN
    -- Repairs by the owner of the database are not restricted.
    IF NOT row_security_active(TG_RELID) THEN RETURN NEW; END IF;
    -- A worker of another generation sets its own token and leaves the name of the previous holder.
    IF NEW.lease_token IS DISTINCT FROM OLD.lease_token AND NEW.lease_token IS NOT NULL
      AND (NEW.worker = generation || NEW.lease_token) IS NOT TRUE THEN RETURN NULL; END IF;
    IF OLD.status = 'CANCELING' AND NEW.status NOT IN ('CANCELING', 'CANCELED') THEN RETURN NULL; END IF;
    IF NEW.status <> OLD.status AND NEW.status IN ('APPLYING', 'SUCCEEDED', 'FAILED')
      AND (OLD.worker = generation || OLD.lease_token) IS NOT TRUE THEN RETURN NULL; END IF;
    RETURN NEW;
  END $$;
CREATE TRIGGER fence_workers BEFORE UPDATE OF status, lease_token ON metadata.deployments
  FOR EACH ROW EXECUTE FUNCTION metadata.fence_workers();

-- Secrets shared by all processes of the service across restarts: the key that seals cursors, unless the deployment sets
-- its own.
CREATE TABLE metadata.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Proof of the erasure of a tenant. It belongs to the operator, not to the tenant.
CREATE TABLE metadata.deletions (
  deletion_id  uuid           PRIMARY KEY,
  -- Id of the erased tenant.
  deleted      uuid           NOT NULL UNIQUE,
  key          text           NOT NULL,
  name         text           NOT NULL,
  due_at       timestamptz(3) NOT NULL,
  begun_at     timestamptz(3) NOT NULL DEFAULT now(),
  finished_at  timestamptz(3),
  -- Rows by table, as `schema.table`; those of the tenant's own schema as `tenant.table`.
  removed      jsonb          NOT NULL DEFAULT '{}',
  -- Whether the tenant's roles were removed; false: another database of the server uses roles of these names.
  roles_removed boolean,
  -- Number of tables searched for the id at the end, and rows still found, by table.
  tables_checked integer,
  remaining    jsonb
);
CREATE INDEX deletions_key ON metadata.deletions (key, begun_at);

-- Completed steps of seeding the demo tenants (templates/seed.ts).
CREATE SCHEMA IF NOT EXISTS seed;
CREATE TABLE IF NOT EXISTS seed.steps (
  tenant      text,
  step        text,
  fingerprint text        NOT NULL,
  done_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, step)
);
