-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA files;
GRANT USAGE ON SCHEMA files TO login_files;
GRANT USAGE ON SCHEMA files TO svc_data;
GRANT USAGE ON SCHEMA files TO svc_files;

CREATE TABLE files.attachments (
  tenant_id uuid NOT NULL,
  file_id uuid NOT NULL,
  object_api_name text NOT NULL,
  record_id uuid NOT NULL,
  CONSTRAINT attachments_tenant_id_file_id_fkey FOREIGN KEY (tenant_id, file_id) REFERENCES files.files(tenant_id, file_id) ON DELETE CASCADE,
  CONSTRAINT attachments_pkey PRIMARY KEY (tenant_id, file_id, object_api_name, record_id)
);
ALTER TABLE files.attachments ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.attachments FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.attachments TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.attachments TO svc_files;

CREATE TABLE files.blobs (
  tenant_id uuid NOT NULL,
  key text NOT NULL,
  noted_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  upload_id uuid,
  sha256 text,
  "position" bigint,
  bytes bigint,
  CONSTRAINT blobs_tenant_id_sha256_fkey FOREIGN KEY (tenant_id, sha256) REFERENCES files.contents(tenant_id, sha256) ON DELETE SET NULL (sha256),
  CONSTRAINT blobs_tenant_id_upload_id_fkey FOREIGN KEY (tenant_id, upload_id) REFERENCES files.uploads(tenant_id, upload_id) ON DELETE SET NULL (upload_id),
  CONSTRAINT blobs_pkey PRIMARY KEY (tenant_id, key)
);
ALTER TABLE files.blobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.blobs FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.blobs TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.blobs TO svc_files;

CREATE TABLE files.contents (
  tenant_id uuid NOT NULL,
  sha256 text NOT NULL,
  bytes bigint NOT NULL,
  state text NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT contents_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
  CONSTRAINT contents_state_check CHECK ((state = ANY (ARRAY['scanning'::text, 'ready'::text, 'quarantined'::text]))),
  CONSTRAINT contents_pkey PRIMARY KEY (tenant_id, sha256)
);
ALTER TABLE files.contents ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.contents FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.contents TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.contents TO svc_files;

CREATE TABLE files.files (
  tenant_id uuid NOT NULL,
  file_id uuid NOT NULL,
  name text NOT NULL,
  description text,
  content_type text NOT NULL,
  sha256 text NOT NULL,
  version integer DEFAULT 1 NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  created_by_id uuid NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  check_at timestamp(3) with time zone NOT NULL,
  unattached boolean DEFAULT true NOT NULL,
  scanned boolean DEFAULT true NOT NULL,
  CONSTRAINT files_tenant_id_sha256_fkey FOREIGN KEY (tenant_id, sha256) REFERENCES files.contents(tenant_id, sha256),
  CONSTRAINT files_pkey PRIMARY KEY (tenant_id, file_id)
);
ALTER TABLE files.files ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.files FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.files TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.files TO svc_files;

CREATE TABLE files.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON files.migrations TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.migrations TO svc_files;

CREATE TABLE files.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.secrets TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.secrets TO svc_files;

CREATE TABLE files.uploads (
  tenant_id uuid NOT NULL,
  upload_id uuid NOT NULL,
  created_by_id uuid NOT NULL,
  name text NOT NULL,
  content_type text NOT NULL,
  bytes bigint NOT NULL,
  received bigint DEFAULT 0 NOT NULL,
  received_sha256 text,
  sha256 text,
  object_api_name text,
  record_id uuid,
  field text,
  expires_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT uploads_pkey PRIMARY KEY (tenant_id, upload_id)
);
ALTER TABLE files.uploads ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.uploads FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.uploads TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.uploads TO svc_files;

CREATE TABLE files.usage (
  tenant_id uuid NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT usage_pkey PRIMARY KEY (tenant_id)
);
ALTER TABLE files.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE files.usage FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON files.usage TO login_files;
GRANT DELETE, INSERT, SELECT, UPDATE ON files.usage TO svc_files;

CREATE INDEX attachments_record ON files.attachments USING btree (tenant_id, record_id, object_api_name, file_id);

CREATE INDEX blobs_content ON files.blobs USING btree (tenant_id, sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX blobs_unused ON files.blobs USING btree (tenant_id, noted_at) WHERE ((upload_id IS NULL) AND (sha256 IS NULL));

CREATE INDEX blobs_upload ON files.blobs USING btree (tenant_id, upload_id) WHERE (upload_id IS NOT NULL);

CREATE INDEX files_check ON files.files USING btree (tenant_id, check_at);

CREATE INDEX files_content ON files.files USING btree (tenant_id, sha256);

CREATE INDEX files_owner ON files.files USING btree (tenant_id, created_by_id, file_id);

CREATE INDEX files_unscanned ON files.files USING btree (tenant_id, created_at) WHERE (NOT scanned);

CREATE INDEX uploads_expiry ON files.uploads USING btree (tenant_id, expires_at);

CREATE TRIGGER note_again BEFORE UPDATE ON files.blobs FOR EACH ROW WHEN (((num_nonnulls(old.upload_id, old.sha256) > 0) AND (num_nonnulls(new.upload_id, new.sha256) = 0))) EXECUTE FUNCTION files.note_again();

CREATE TRIGGER count_bytes AFTER INSERT OR DELETE ON files.files FOR EACH ROW EXECUTE FUNCTION files.count_bytes();

CREATE TRIGGER count_bytes AFTER INSERT OR DELETE ON files.uploads FOR EACH ROW EXECUTE FUNCTION files.count_bytes();

CREATE POLICY tenant ON files.attachments AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON files.blobs AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON files.contents AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY numbers ON files.files AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON files.files AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY numbers ON files.uploads AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON files.uploads AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY numbers ON files.usage AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON files.usage AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION files.count_bytes() RETURNS trigger LANGUAGE plpgsql -- body ae7b77c8ec22

CREATE FUNCTION files.hold(uuid,uuid[]) RETURNS TABLE(file_id uuid, created_by_id uuid, object_api_name text, record_id uuid) LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body b71da90c8ffd
GRANT EXECUTE ON FUNCTION files.hold(uuid,uuid[]) TO svc_data;

CREATE FUNCTION files.note_again() RETURNS trigger LANGUAGE plpgsql -- body 6c441251f51d

CREATE FUNCTION files.numbers() RETURNS TABLE(uploads integer, bytes double precision, fullest double precision, unscanned integer, oldest timestamp with time zone) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body b419645dfbc0
GRANT EXECUTE ON FUNCTION files.numbers() TO login_files;
