-- Jobs that import or export many records.
CREATE TABLE bulk.jobs (
  tenant_id       uuid           NOT NULL,
  -- In the order of their creation.
  job_id          uuid           NOT NULL,
  user_id         uuid           NOT NULL,
  client_id       text           NOT NULL,
  state           text           NOT NULL CHECK (state IN
    ('OPEN', 'UPLOADED', 'QUEUED', 'PROCESSING', 'CANCELING', 'COMPLETED', 'FAILED', 'CANCELED')),
  operation       text           NOT NULL,
  object_api_name text           NOT NULL,
  -- The body of its creation.
  request         jsonb          NOT NULL,
  -- Of the request that has started it: rows are read and written in this context.
  context         jsonb,
  -- Rows; NULL: not known yet.
  total           bigint,
  processed       bigint         NOT NULL DEFAULT 0,
  succeeded       bigint         NOT NULL DEFAULT 0,
  failed          bigint         NOT NULL DEFAULT 0,
  -- Of an export: where the next page begins, and the digest of the whole file when it is complete.
  cursor          text,
  sha256          text,
  -- Times that it was taken up since it last got on.
  attempts        integer        NOT NULL DEFAULT 0,
  error           jsonb,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- When it began to wait for its turn.
  queued_at       timestamptz(3),
  started_at      timestamptz(3),
  finished_at     timestamptz(3),
  expires_at      timestamptz(3) NOT NULL,
  PRIMARY KEY (tenant_id, job_id)
);
CREATE INDEX jobs_owner ON bulk.jobs (tenant_id, user_id, client_id, job_id);
CREATE INDEX jobs_open ON bulk.jobs (tenant_id, state) WHERE finished_at IS NULL;
CREATE INDEX jobs_expired ON bulk.jobs (tenant_id, expires_at);

-- Every blob whose key was handed out, until it is removed from the store.
CREATE TABLE bulk.blobs (
  tenant_id  uuid           NOT NULL,
  blob_key   text           NOT NULL,
  job_id     uuid           NOT NULL,
  -- Whose stored bytes it counts as.
  user_id    uuid           NOT NULL,
  -- `receiving`: announced, of the declared length; `part` of an import; `segment` of an export; `garbage`: to be removed.
  kind       text           NOT NULL CHECK (kind IN ('receiving', 'part', 'segment', 'garbage')),
  -- Of a part or a segment.
  number     integer        NOT NULL,
  bytes      bigint         NOT NULL,
  -- Of a part.
  rows       bigint,
  sha256     text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, blob_key)
);
CREATE UNIQUE INDEX blobs_in_use ON bulk.blobs (tenant_id, job_id, number) WHERE kind IN ('part', 'segment');
CREATE INDEX blobs_unused ON bulk.blobs (tenant_id, created_at) WHERE kind IN ('receiving', 'garbage');

-- Outcomes of the rows of a chunk, committed after the chunk.
CREATE TABLE bulk.results (
  tenant_id uuid    NOT NULL,
  job_id    uuid    NOT NULL,
  -- Row number of the first one.
  first_row bigint  NOT NULL,
  succeeded integer NOT NULL,
  failed    integer NOT NULL,
  -- [{rowNumber, outcome, id, etag, created, errors}]
  rows      json    NOT NULL,
  PRIMARY KEY (tenant_id, job_id, first_row),
  FOREIGN KEY (tenant_id, job_id) REFERENCES bulk.jobs ON DELETE CASCADE
);

-- Keys that seal cursors.
CREATE TABLE bulk.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['jobs', 'blobs', 'results'] LOOP
    EXECUTE format('ALTER TABLE bulk.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE bulk.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON bulk.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;

-- Numbers about all tenants together, for metrics: the login of the service sees no tenant's rows for them. `at_work_max`: a tenant with
-- so many jobs at work keeps the others waiting itself; `stuck_after`: attempts without progress.
CREATE POLICY numbers ON bulk.jobs FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION bulk.numbers(at_work_max integer, stuck_after integer)
  RETURNS TABLE (queued integer, processing integer, canceling integer, stuck integer, oldest timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    WITH open AS (
      SELECT tenant_id, state, attempts, queued_at FROM bulk.jobs
      WHERE finished_at IS NULL AND state IN ('QUEUED', 'PROCESSING', 'CANCELING')),
    busy AS (SELECT tenant_id FROM open WHERE state <> 'QUEUED' GROUP BY tenant_id HAVING count(*) >= at_work_max)
    SELECT (count(*) FILTER (WHERE state = 'QUEUED'))::integer, (count(*) FILTER (WHERE state = 'PROCESSING'))::integer,
      (count(*) FILTER (WHERE state = 'CANCELING'))::integer, (count(*) FILTER (WHERE attempts >= stuck_after))::integer,
      min(queued_at) FILTER (WHERE state = 'QUEUED' AND tenant_id NOT IN (SELECT tenant_id FROM busy)) FROM open
  $$;
REVOKE EXECUTE ON FUNCTION bulk.numbers FROM PUBLIC;
