-- The registry of tenants. A platform table: it is what a tenant is found by, before any tenant is known.
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
  -- Number of the newest file of services/metadata/tenant-schema that this tenant's schema has.
  tenant_schema_version integer        NOT NULL DEFAULT 0,
  created_at            timestamptz(3) NOT NULL DEFAULT now()
);

-- The configuration of a tenant as it is now: one row per component.
CREATE TABLE metadata.components (
  tenant_id          uuid           NOT NULL,
  type               text           NOT NULL,
  full_name          text           NOT NULL,
  path               text           NOT NULL,
  -- Canonical YAML; `body` is what it says, `hash` is the SHA-256 of its bytes.
  yaml               text           NOT NULL,
  -- json keeps the order of keys, which the canonical form gives a meaning.
  body               json           NOT NULL,
  hash               text           NOT NULL,
  -- Shipped with the platform: tenants read it and cannot change it.
  system             boolean        NOT NULL DEFAULT false,
  changed_at_version integer        NOT NULL,
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  -- NULL: the platform.
  updated_by_id      uuid,
  PRIMARY KEY (tenant_id, type, full_name)
);

-- What the other services read: the configuration compiled, one immutable document per version.
CREATE TABLE metadata.snapshots (
  tenant_id  uuid           NOT NULL,
  version    integer        NOT NULL,
  bytes      bytea          NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, version)
);

-- Which deployment made which version; NULL: the platform's own templates.
CREATE TABLE metadata.versions (
  tenant_id     uuid           NOT NULL,
  version       integer        NOT NULL,
  deployment_id uuid,
  made_by_id    uuid,
  changes       integer        NOT NULL,
  made_at       timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, version)
);

-- Deployments and recorded validations. The truth about their state; the job queue only wakes workers.
CREATE TABLE metadata.deployments (
  tenant_id                 uuid           NOT NULL,
  deployment_id             uuid           NOT NULL,
  -- Order in which the deployments of a tenant are applied.
  queue_number              bigint         GENERATED ALWAYS AS IDENTITY,
  status                    text           NOT NULL DEFAULT 'QUEUED'
    CHECK (status IN ('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING', 'SUCCEEDED', 'FAILED', 'CANCELED')),
  kind                      text           NOT NULL CHECK (kind IN ('deploy', 'validation', 'quickDeploy', 'rollback')),
  check_only                boolean        NOT NULL,
  allow_destructive_changes boolean        NOT NULL,
  base_metadata_version     integer,
  expected_plan_hash        text,
  manifest_hash             text           NOT NULL,
  package                   json          NOT NULL,
  files                     json          NOT NULL,
  created_at                timestamptz(3) NOT NULL DEFAULT now(),
  started_at                timestamptz(3),
  finished_at               timestamptz(3),
  created_by_user_id        uuid           NOT NULL,
  created_by_display_name   text           NOT NULL,
  created_by_client_id      text           NOT NULL,
  created_by_agent_run_id   uuid,
  -- System permissions that the user held when the deployment was accepted: nobody gives away what they do not hold.
  created_by_permissions    text[]         NOT NULL DEFAULT '{}',
  request_id                text           NOT NULL,
  idempotency_key           text           NOT NULL,
  stage                     text           NOT NULL DEFAULT 'queue' CHECK (stage IN ('queue', 'validate', 'apply', 'done')),
  done                      integer        NOT NULL DEFAULT 0,
  total                     integer        NOT NULL DEFAULT 0,
  plan_hash                 text,
  -- {creates, updates, deletes, noops, blocked, warnings} as the API shows them.
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
  -- Which worker has it: how often it was taken, the token that its writes must show, and until when.
  takes                     integer        NOT NULL DEFAULT 0,
  lease_token               uuid,
  lease_until               timestamptz,
  PRIMARY KEY (tenant_id, deployment_id)
);
CREATE INDEX deployments_open ON metadata.deployments (tenant_id, queue_number)
  WHERE status IN ('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING');
CREATE INDEX deployments_order ON metadata.deployments (tenant_id, queue_number);

-- The second lock against crossing tenants, behind the tenant_id that every statement names.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['components', 'snapshots', 'versions', 'deployments'] LOOP
    EXECUTE format('ALTER TABLE metadata.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE metadata.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON metadata.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;
