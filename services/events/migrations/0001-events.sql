-- Keys that seal cursors.
CREATE TABLE events.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);

-- Subscriptions to events, whose deliveries are sent to an address.
CREATE TABLE events.subscriptions (
  tenant_id       uuid           NOT NULL,
  subscription_id uuid           NOT NULL,
  -- In whose name events are read.
  user_id         uuid           NOT NULL,
  client_id       text           NOT NULL,
  -- The connection that has made or activated it, whose end by its user is its own.
  grant_id        text           NOT NULL,
  name            text           NOT NULL,
  url             text           NOT NULL,
  event_types     text[]         NOT NULL,
  -- Empty: events about anything.
  objects         text[]         NOT NULL,
  payload         text           NOT NULL CHECK (payload IN ('thin', 'full')),
  ordering        text           NOT NULL CHECK (ordering IN ('none', 'perRecord')),
  signing         text           NOT NULL CHECK (signing IN ('hmac', 'ed25519')),
  state           text           NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'suspended')),
  -- Why it is suspended.
  reason          text,
  version         integer        NOT NULL DEFAULT 1,
  -- [{secret, until}], sealed, the newest first; `until` is null for that one.
  secrets         jsonb          NOT NULL,
  public_key      text,
  -- Number of the last event for which deliveries were made.
  position        bigint         NOT NULL,
  -- Since when every attempt has failed, and how many there were.
  failing_since   timestamptz(3),
  failure_count   integer        NOT NULL DEFAULT 0,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, subscription_id)
);

-- An event for a subscription. Its content is read when it is sent.
CREATE TABLE events.deliveries (
  tenant_id       uuid           NOT NULL,
  delivery_id     uuid           NOT NULL,
  subscription_id uuid           NOT NULL,
  sequence        bigint         NOT NULL,
  event_type      text           NOT NULL,
  subject         text           NOT NULL,
  -- `hidden`: the user may not know of it. `parked`: the last attempt has failed.
  status          text           NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'hidden', 'parked')),
  -- [{at, status, latencyMs, responseHead, failure}], the latest ones.
  attempts        jsonb          NOT NULL DEFAULT '[]',
  -- Attempts since it was queued, or sent again.
  tries           integer        NOT NULL DEFAULT 0,
  next_at         timestamptz(3) NOT NULL DEFAULT now(),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, delivery_id),
  FOREIGN KEY (tenant_id, subscription_id) REFERENCES events.subscriptions ON DELETE CASCADE
);
CREATE UNIQUE INDEX deliveries_once ON events.deliveries (tenant_id, subscription_id, sequence);
CREATE INDEX deliveries_due ON events.deliveries (tenant_id, subscription_id, subject, sequence) WHERE status = 'pending';
CREATE INDEX deliveries_parked ON events.deliveries (tenant_id, subscription_id) WHERE status = 'parked';
CREATE INDEX deliveries_old ON events.deliveries (tenant_id, created_at);

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['subscriptions', 'deliveries'] LOOP
    EXECUTE format('ALTER TABLE events.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE events.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON events.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;

-- Numbers about all tenants together, for metrics: the login of the service sees no tenant's rows for them. A delivery is due when nothing
-- but a process has to send it: those that wait for an earlier event about the same are not.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['subscriptions', 'deliveries'] LOOP
    EXECUTE format('CREATE POLICY numbers ON events.%I FOR SELECT TO CURRENT_USER USING (true)', name);
  END LOOP;
END $$;
CREATE FUNCTION events.numbers()
  RETURNS TABLE (due integer, waiting integer, parked integer, oldest_due timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    WITH pending AS (
      SELECT d.next_at, d.next_at <= now() AND NOT EXISTS (
          SELECT FROM events.deliveries e WHERE e.tenant_id = d.tenant_id AND e.subscription_id = d.subscription_id
            AND e.subject = d.subject AND e.status = 'pending' AND e.sequence < d.sequence) AS is_due
      FROM events.deliveries d JOIN events.subscriptions s ON s.tenant_id = d.tenant_id AND s.subscription_id = d.subscription_id
      WHERE s.state = 'active' AND d.status = 'pending')
    SELECT (count(*) FILTER (WHERE is_due))::integer, (count(*) FILTER (WHERE NOT is_due))::integer,
      (SELECT count(*)::integer
        FROM events.deliveries d JOIN events.subscriptions s ON s.tenant_id = d.tenant_id AND s.subscription_id = d.subscription_id
        WHERE s.state = 'active' AND d.status = 'parked'),
      min(next_at) FILTER (WHERE is_due) FROM pending
  $$;
REVOKE EXECUTE ON FUNCTION events.numbers FROM PUBLIC;
