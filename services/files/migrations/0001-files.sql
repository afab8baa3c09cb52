-- Keys that seal cursors.
CREATE TABLE files.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);

-- A content, once for each tenant however many files have it.
CREATE TABLE files.contents (
  tenant_id  uuid           NOT NULL,
  -- In lower-case hex.
  sha256     text           NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  bytes      bigint         NOT NULL,
  state      text           NOT NULL CHECK (state IN ('scanning', 'ready', 'quarantined')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, sha256)
);

CREATE TABLE files.files (
  tenant_id     uuid           NOT NULL,
  file_id       uuid           NOT NULL,
  name          text           NOT NULL,
  description   text,
  content_type  text           NOT NULL,
  sha256        text           NOT NULL,
  version       integer        NOT NULL DEFAULT 1,
  created_at    timestamptz(3) NOT NULL DEFAULT now(),
  created_by_id uuid           NOT NULL,
  updated_at    timestamptz(3) NOT NULL DEFAULT now(),
  -- When to look next whether a record refers to it; `unattached`: none did when it was looked last.
  check_at      timestamptz(3) NOT NULL,
  unattached    boolean        NOT NULL DEFAULT true,
  -- A scan has ended since the file was made: it waits for one of its own, so that nobody learns that its content was there before.
  scanned       boolean        NOT NULL DEFAULT true,
  PRIMARY KEY (tenant_id, file_id),
  FOREIGN KEY (tenant_id, sha256) REFERENCES files.contents
);
CREATE INDEX files_owner ON files.files (tenant_id, created_by_id, file_id);
CREATE INDEX files_content ON files.files (tenant_id, sha256);
CREATE INDEX files_check ON files.files (tenant_id, check_at);
CREATE INDEX files_unscanned ON files.files (tenant_id, created_at) WHERE NOT scanned;

-- Records that files are attached to without a field. Fields stand in the records alone.
CREATE TABLE files.attachments (
  tenant_id       uuid NOT NULL,
  file_id         uuid NOT NULL,
  object_api_name text NOT NULL,
  record_id       uuid NOT NULL,
  PRIMARY KEY (tenant_id, file_id, object_api_name, record_id),
  FOREIGN KEY (tenant_id, file_id) REFERENCES files.files ON DELETE CASCADE
);
CREATE INDEX attachments_record ON files.attachments (tenant_id, record_id, object_api_name, file_id);

CREATE TABLE files.uploads (
  tenant_id       uuid           NOT NULL,
  upload_id       uuid           NOT NULL,
  created_by_id   uuid           NOT NULL,
  name            text           NOT NULL,
  content_type    text           NOT NULL,
  bytes           bigint         NOT NULL,
  -- Bytes that are there.
  received        bigint         NOT NULL DEFAULT 0,
  -- Of these bytes; null: not known.
  received_sha256 text,
  sha256          text,
  object_api_name text,
  record_id       uuid,
  -- Of the record, which is written when the upload is completed.
  field           text,
  expires_at      timestamptz(3) NOT NULL,
  PRIMARY KEY (tenant_id, upload_id)
);
CREATE INDEX uploads_expiry ON files.uploads (tenant_id, expires_at);

-- Keys in the store, each noted before bytes are put there. One that belongs to no upload and no content is removed when it
-- is old enough that nobody can be about to take it.
CREATE TABLE files.blobs (
  tenant_id uuid           NOT NULL,
  key       text           NOT NULL,
  -- Since when it belongs to nothing, as long as it does.
  noted_at  timestamptz(3) NOT NULL DEFAULT now(),
  upload_id uuid,
  sha256    text,
  -- Of its first byte.
  position  bigint,
  bytes     bigint,
  PRIMARY KEY (tenant_id, key),
  FOREIGN KEY (tenant_id, upload_id) REFERENCES files.uploads ON DELETE SET NULL (upload_id),
  FOREIGN KEY (tenant_id, sha256) REFERENCES files.contents ON DELETE SET NULL (sha256)
);
CREATE INDEX blobs_upload ON files.blobs (tenant_id, upload_id) WHERE upload_id IS NOT NULL;
CREATE INDEX blobs_content ON files.blobs (tenant_id, sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX blobs_unused ON files.blobs (tenant_id, noted_at) WHERE upload_id IS NULL AND sha256 IS NULL;

-- Downloads, exports and backups that have begun still read what belonged to something a moment ago.
CREATE FUNCTION files.note_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.noted_at := now();
  RETURN NEW;
END $$;
CREATE TRIGGER note_again BEFORE UPDATE ON files.blobs FOR EACH ROW
  WHEN (num_nonnulls(OLD.upload_id, OLD.sha256) > 0 AND num_nonnulls(NEW.upload_id, NEW.sha256) = 0)
  EXECUTE FUNCTION files.note_again();

-- Bytes of a tenant's files and open uploads. A content counts with each of its files: were it counted once, what a file adds would
-- say whether somebody else has it.
CREATE TABLE files.usage (
  tenant_id uuid   PRIMARY KEY,
  bytes     bigint NOT NULL
);

-- Whoever adds bytes holds the row of the tenant until the end of the transaction: what is counted then is exact.
CREATE FUNCTION files.count_bytes() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
  counted record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  size bigint;
BEGIN
  IF TG_TABLE_NAME = 'uploads' THEN
    size := counted.bytes;
  ELSE
    SELECT bytes INTO STRICT size FROM files.contents WHERE tenant_id = counted.tenant_id AND sha256 = counted.sha256;
  END IF;
  IF TG_OP = 'DELETE' THEN
    UPDATE files.usage SET bytes = bytes - size WHERE tenant_id = counted.tenant_id;
  ELSE
    INSERT INTO files.usage AS u (tenant_id, bytes) VALUES (counted.tenant_id, size)
      ON CONFLICT (tenant_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_bytes AFTER INSERT OR DELETE ON files.files FOR EACH ROW EXECUTE FUNCTION files.count_bytes();
CREATE TRIGGER count_bytes AFTER INSERT OR DELETE ON files.uploads FOR EACH ROW EXECUTE FUNCTION files.count_bytes();

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['contents', 'files', 'attachments', 'uploads', 'blobs', 'usage'] LOOP
    EXECUTE format('ALTER TABLE files.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE files.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON files.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;

-- Files that a record is about to refer to, with their owners and the records that they are attached to. Until the transaction
-- ends none of them is deleted.
CREATE FUNCTION files.hold(tenant uuid, ids uuid[])
  RETURNS TABLE (file_id uuid, created_by_id uuid, object_api_name text, record_id uuid)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN; END IF;
    PERFORM FROM files.files f WHERE f.tenant_id = tenant AND f.file_id = ANY (ids) ORDER BY f.file_id FOR KEY SHARE;
    UPDATE files.files f SET unattached = false WHERE f.tenant_id = tenant AND f.file_id = ANY (ids) AND f.unattached;
    RETURN QUERY SELECT f.file_id, f.created_by_id, a.object_api_name, a.record_id FROM files.files f
      LEFT JOIN files.attachments a ON a.tenant_id = f.tenant_id AND a.file_id = f.file_id
      WHERE f.tenant_id = tenant AND f.file_id = ANY (ids);
  END $$;
REVOKE EXECUTE ON FUNCTION files.hold FROM PUBLIC;

-- Numbers about all tenants together, for metrics: the login of the service sees no tenant's rows for them.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['files', 'uploads', 'usage'] LOOP
    EXECUTE format('CREATE POLICY numbers ON files.%I FOR SELECT TO CURRENT_USER USING (true)', name);
  END LOOP;
END $$;
CREATE FUNCTION files.numbers()
  RETURNS TABLE (uploads integer, bytes float8, fullest float8, unscanned integer, oldest timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT (SELECT count(*)::integer FROM files.uploads WHERE expires_at > now()),
      (SELECT coalesce(sum(u.bytes), 0)::float8 FROM files.usage u), (SELECT coalesce(max(u.bytes), 0)::float8 FROM files.usage u),
      count(*)::integer, min(f.created_at) FROM files.files f WHERE NOT f.scanned
  $$;
REVOKE EXECUTE ON FUNCTION files.numbers FROM PUBLIC;
