-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA bulk;
GRANT USAGE ON SCHEMA bulk TO login_bulk;
GRANT USAGE ON SCHEMA bulk TO svc_bulk;

CREATE TABLE bulk.blobs (
  tenant_id uuid NOT NULL,
  blob_key text NOT NULL,
  job_id uuid NOT NULL,
  user_id uuid NOT NULL,
  kind text NOT NULL,
  number integer NOT NULL,
  bytes bigint NOT NULL,
  rows bigint,
  sha256 text,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT blobs_kind_check CHECK ((kind = ANY (ARRAY['receiving'::text, 'part'::text, 'segment'::text, 'garbage'::text]))),
  CONSTRAINT blobs_pkey PRIMARY KEY (tenant_id, blob_key)
);
ALTER TABLE bulk.blobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE bulk.blobs FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON bulk.blobs TO login_bulk;
GRANT DELETE, INSERT, SELECT, UPDATE ON bulk.blobs TO svc_bulk;

CREATE TABLE bulk.jobs (
  tenant_id uuid NOT NULL,
  job_id uuid NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  state text NOT NULL,
  operation text NOT NULL,
  object_api_name text NOT NULL,
  request jsonb NOT NULL,
  context jsonb,
  total bigint,
  processed bigint DEFAULT 0 NOT NULL,
  succeeded bigint DEFAULT 0 NOT NULL,
  failed bigint DEFAULT 0 NOT NULL,
  cursor text,
  sha256 text,
  attempts integer DEFAULT 0 NOT NULL,
  error jsonb,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  queued_at timestamp(3) with time zone,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['OPEN'::text, 'UPLOADED'::text, 'QUEUED'::text, 'PROCESSING'::text, 'CANCELING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELED'::text]))),
  CONSTRAINT jobs_pkey PRIMARY KEY (tenant_id, job_id)
);
ALTER TABLE bulk.jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE bulk.jobs FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON bulk.jobs TO login_bulk;
GRANT DELETE, INSERT, SELECT, UPDATE ON bulk.jobs TO svc_bulk;

CREATE TABLE bulk.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON bulk.migrations TO login_bulk;
GRANT DELETE, INSERT, SELECT, UPDATE ON bulk.migrations TO svc_bulk;

CREATE TABLE bulk.results (
  tenant_id uuid NOT NULL,
  job_id uuid NOT NULL,
  first_row bigint NOT NULL,
  succeeded integer NOT NULL,
  failed integer NOT NULL,
  rows json NOT NULL,
  CONSTRAINT results_tenant_id_job_id_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES bulk.jobs(tenant_id, job_id) ON DELETE CASCADE,
  CONSTRAINT results_pkey PRIMARY KEY (tenant_id, job_id, first_row)
);
ALTER TABLE bulk.results ENABLE ROW LEVEL SECURITY;
ALTER TABLE bulk.results FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON bulk.results TO login_bulk;
GRANT DELETE, INSERT, SELECT, UPDATE ON bulk.results TO svc_bulk;

CREATE TABLE bulk.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON bulk.secrets TO login_bulk;
GRANT DELETE, INSERT, SELECT, UPDATE ON bulk.secrets TO svc_bulk;

CREATE UNIQUE INDEX blobs_in_use ON bulk.blobs USING btree (tenant_id, job_id, number) WHERE (kind = ANY (ARRAY['part'::text, 'segment'::text]));

CREATE INDEX blobs_unused ON bulk.blobs USING btree (tenant_id, created_at) WHERE (kind = ANY (ARRAY['receiving'::text, 'garbage'::text]));

CREATE INDEX jobs_expired ON bulk.jobs USING btree (tenant_id, expires_at);

CREATE INDEX jobs_open ON bulk.jobs USING btree (tenant_id, state) WHERE (finished_at IS NULL);

CREATE INDEX jobs_owner ON bulk.jobs USING btree (tenant_id, user_id, client_id, job_id);

CREATE POLICY tenant ON bulk.blobs AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY numbers ON bulk.jobs AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON bulk.jobs AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON bulk.results AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION bulk.numbers(integer,integer) RETURNS TABLE(queued integer, processing integer, canceling integer, stuck integer, oldest timestamp with time zone) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 135ee6f4e190
GRANT EXECUTE ON FUNCTION bulk.numbers(integer,integer) TO login_bulk;
