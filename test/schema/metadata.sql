-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA metadata;
GRANT USAGE ON SCHEMA metadata TO login_metadata;
GRANT USAGE ON SCHEMA metadata TO svc_data;
GRANT USAGE ON SCHEMA metadata TO svc_metadata;

CREATE SEQUENCE metadata.deployments_queue_number_seq AS bigint INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 START 1;
GRANT SELECT, USAGE ON SEQUENCE metadata.deployments_queue_number_seq TO login_metadata;
GRANT USAGE ON SEQUENCE metadata.deployments_queue_number_seq TO svc_metadata;

CREATE TABLE metadata.components (
  tenant_id uuid NOT NULL,
  type text NOT NULL,
  full_name text NOT NULL,
  path text NOT NULL,
  yaml text NOT NULL,
  body json NOT NULL,
  hash text NOT NULL,
  system boolean DEFAULT false NOT NULL,
  changed_at_version integer NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  updated_by_id uuid,
  CONSTRAINT components_pkey PRIMARY KEY (tenant_id, type, full_name)
);
ALTER TABLE metadata.components ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.components FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.components TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.components TO svc_metadata;

CREATE TABLE metadata.deleted_components (
  tenant_id uuid NOT NULL,
  type text NOT NULL,
  full_name text NOT NULL,
  path text NOT NULL,
  yaml text NOT NULL,
  body json NOT NULL,
  hash text NOT NULL,
  system boolean NOT NULL,
  deleted_at_version integer NOT NULL,
  deleted_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  deleted_by_id uuid,
  deployment_id uuid,
  CONSTRAINT deleted_components_pkey PRIMARY KEY (tenant_id, type, full_name)
);
ALTER TABLE metadata.deleted_components ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.deleted_components FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.deleted_components TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.deleted_components TO svc_metadata;

CREATE TABLE metadata.deletions (
  deletion_id uuid NOT NULL,
  deleted uuid NOT NULL,
  key text NOT NULL,
  name text NOT NULL,
  due_at timestamp(3) with time zone NOT NULL,
  begun_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  finished_at timestamp(3) with time zone,
  removed jsonb DEFAULT '{}'::jsonb NOT NULL,
  roles_removed boolean,
  tables_checked integer,
  remaining jsonb,
  CONSTRAINT deletions_pkey PRIMARY KEY (deletion_id),
  CONSTRAINT deletions_deleted_key UNIQUE (deleted)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.deletions TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.deletions TO svc_metadata;

CREATE TABLE metadata.deployments (
  tenant_id uuid NOT NULL,
  deployment_id uuid NOT NULL,
  queue_number bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  status text DEFAULT 'QUEUED'::text NOT NULL,
  kind text NOT NULL,
  check_only boolean NOT NULL,
  allow_destructive_changes boolean NOT NULL,
  base_metadata_version integer,
  expected_plan_hash text,
  manifest_hash text NOT NULL,
  package json NOT NULL,
  files json NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  created_by_user_id uuid NOT NULL,
  created_by_display_name text NOT NULL,
  created_by_client_id text NOT NULL,
  created_by_agent_run_id uuid,
  created_by_permissions text[] DEFAULT '{}'::text[] NOT NULL,
  request_id text NOT NULL,
  idempotency_key text NOT NULL,
  stage text DEFAULT 'queue'::text NOT NULL,
  done integer DEFAULT 0 NOT NULL,
  total integer DEFAULT 0 NOT NULL,
  plan_hash text,
  plan json,
  inverse_plan json,
  metadata_version_before integer,
  metadata_version_after integer,
  error jsonb,
  used_by_deployment_id uuid,
  reverts_deployment_id uuid,
  reverted_by_deployment_id uuid,
  cancel_requested boolean DEFAULT false NOT NULL,
  canceled_by_id uuid,
  takes integer DEFAULT 0 NOT NULL,
  lease_token uuid,
  lease_until timestamp with time zone,
  cancel_reason text,
  irreversible jsonb DEFAULT '[]'::jsonb NOT NULL,
  forgotten boolean DEFAULT false NOT NULL,
  worker text,
  CONSTRAINT deployments_kind_check CHECK ((kind = ANY (ARRAY['deploy'::text, 'validation'::text, 'quickDeploy'::text, 'rollback'::text]))),
  CONSTRAINT deployments_stage_check CHECK ((stage = ANY (ARRAY['queue'::text, 'validate'::text, 'apply'::text, 'done'::text]))),
  CONSTRAINT deployments_status_check CHECK ((status = ANY (ARRAY['QUEUED'::text, 'VALIDATING'::text, 'APPLYING'::text, 'CANCELING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'CANCELED'::text]))),
  CONSTRAINT deployments_pkey PRIMARY KEY (tenant_id, deployment_id)
);
ALTER TABLE metadata.deployments ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.deployments FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.deployments TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.deployments TO svc_metadata;

CREATE TABLE metadata.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON metadata.migrations TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.migrations TO svc_metadata;

CREATE TABLE metadata.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.secrets TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.secrets TO svc_metadata;

CREATE TABLE metadata.snapshots (
  tenant_id uuid NOT NULL,
  version integer NOT NULL,
  bytes bytea NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT snapshots_pkey PRIMARY KEY (tenant_id, version)
);
ALTER TABLE metadata.snapshots ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.snapshots FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.snapshots TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.snapshots TO svc_metadata;

CREATE TABLE metadata.tenants (
  id uuid NOT NULL,
  key text NOT NULL,
  name text NOT NULL,
  region text NOT NULL,
  edition text NOT NULL,
  sandbox boolean NOT NULL,
  locale text NOT NULL,
  timezone text NOT NULL,
  currency text NOT NULL,
  rate_limits jsonb NOT NULL,
  suspended boolean DEFAULT false NOT NULL,
  metadata_version integer DEFAULT 0 NOT NULL,
  tenant_schema_version integer DEFAULT 0 NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  index_generation integer DEFAULT 0 NOT NULL,
  operator_limits jsonb DEFAULT '{"daily": null, "tenant": null, "connection": null, "concurrency": null}'::jsonb NOT NULL,
  created_as jsonb DEFAULT '{}'::jsonb NOT NULL,
  template_pending boolean DEFAULT false NOT NULL,
  suspended_at timestamp(3) with time zone,
  suspended_reason text,
  delete_at timestamp(3) with time zone,
  erasing_since timestamp(3) with time zone,
  compiled_version integer DEFAULT 0 NOT NULL,
  compiler integer DEFAULT 0 NOT NULL,
  CONSTRAINT tenants_key_check CHECK ((key ~ '^[a-z][a-z0-9]{1,30}$'::text)),
  CONSTRAINT tenants_pkey PRIMARY KEY (id),
  CONSTRAINT tenants_key_key UNIQUE (key)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.tenants TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.tenants TO svc_metadata;

CREATE TABLE metadata.version_components (
  tenant_id uuid NOT NULL,
  version integer NOT NULL,
  type text NOT NULL,
  full_name text NOT NULL,
  CONSTRAINT version_components_pkey PRIMARY KEY (tenant_id, type, full_name, version)
);
ALTER TABLE metadata.version_components ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.version_components FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.version_components TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.version_components TO svc_metadata;

CREATE TABLE metadata.versions (
  tenant_id uuid NOT NULL,
  version integer NOT NULL,
  deployment_id uuid,
  made_by_id uuid,
  changes integer NOT NULL,
  made_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT versions_pkey PRIMARY KEY (tenant_id, version)
);
ALTER TABLE metadata.versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.versions FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON metadata.versions TO login_metadata;
GRANT DELETE, INSERT, SELECT, UPDATE ON metadata.versions TO svc_metadata;

CREATE INDEX deleted_components_at ON metadata.deleted_components USING btree (deleted_at);

CREATE INDEX deletions_key ON metadata.deletions USING btree (key, begun_at);

CREATE INDEX deployments_kept ON metadata.deployments USING btree (tenant_id, queue_number) WHERE (NOT forgotten);

CREATE INDEX deployments_open ON metadata.deployments USING btree (tenant_id, queue_number) WHERE (status = ANY (ARRAY['QUEUED'::text, 'VALIDATING'::text, 'APPLYING'::text, 'CANCELING'::text]));

CREATE INDEX deployments_order ON metadata.deployments USING btree (tenant_id, queue_number);

CREATE INDEX version_components_version ON metadata.version_components USING btree (tenant_id, version);

CREATE TRIGGER fence_workers BEFORE UPDATE OF status, lease_token ON metadata.deployments FOR EACH ROW EXECUTE FUNCTION metadata.fence_workers();

CREATE POLICY tenant ON metadata.components AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON metadata.deleted_components AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON metadata.deployments AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON metadata.deployments AS PERMISSIVE FOR ALL TO login_metadata USING true WITH CHECK true;

CREATE POLICY tenant ON metadata.deployments AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON metadata.snapshots AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON metadata.version_components AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON metadata.versions AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION metadata.create_tenant_schema(uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 8e1a9d5d5e18
GRANT EXECUTE ON FUNCTION metadata.create_tenant_schema(uuid) TO login_metadata;

CREATE FUNCTION metadata.ensure_tenant_roles(uuid) RETURNS void LANGUAGE plpgsql SET search_path=pg_catalog, pg_temp -- body 064daff5cb8a

CREATE FUNCTION metadata.erase_rows(uuid,integer) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body af4f3917fe49
GRANT EXECUTE ON FUNCTION metadata.erase_rows(uuid,integer) TO login_metadata;

CREATE FUNCTION metadata.erase_tenant(uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body c4db2ff0889c
GRANT EXECUTE ON FUNCTION metadata.erase_tenant(uuid) TO login_metadata;

CREATE FUNCTION metadata.fence_workers() RETURNS trigger LANGUAGE plpgsql SET search_path=pg_catalog, pg_temp -- body 0699d09bc9e3

CREATE FUNCTION metadata.find_traces(uuid) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 2a6c20039291
GRANT EXECUTE ON FUNCTION metadata.find_traces(uuid) TO login_metadata;

CREATE FUNCTION metadata.shared_tables() RETURNS TABLE(name regclass, of_tenants boolean, refers boolean) LANGUAGE sql STABLE SET search_path=pg_catalog, pg_temp -- body 56d49a3e2b83

CREATE FUNCTION metadata.tenant_schema_version(uuid) RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body c1517dfaa3c3
GRANT EXECUTE ON FUNCTION metadata.tenant_schema_version(uuid) TO svc_data;

CREATE FUNCTION metadata.tenant_suspended(uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body b22029f6a8cf
GRANT EXECUTE ON FUNCTION metadata.tenant_suspended(uuid) TO svc_data;
