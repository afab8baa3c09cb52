-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA events;
GRANT USAGE ON SCHEMA events TO login_events;
GRANT USAGE ON SCHEMA events TO svc_events;

CREATE TABLE events.deliveries (
  tenant_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  sequence bigint NOT NULL,
  event_type text NOT NULL,
  subject text NOT NULL,
  status text DEFAULT 'pending'::text NOT NULL,
  attempts jsonb DEFAULT '[]'::jsonb NOT NULL,
  tries integer DEFAULT 0 NOT NULL,
  next_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'hidden'::text, 'parked'::text]))),
  CONSTRAINT deliveries_tenant_id_subscription_id_fkey FOREIGN KEY (tenant_id, subscription_id) REFERENCES events.subscriptions(tenant_id, subscription_id) ON DELETE CASCADE,
  CONSTRAINT deliveries_pkey PRIMARY KEY (tenant_id, delivery_id)
);
ALTER TABLE events.deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE events.deliveries FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON events.deliveries TO login_events;
GRANT DELETE, INSERT, SELECT, UPDATE ON events.deliveries TO svc_events;

CREATE TABLE events.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON events.migrations TO login_events;
GRANT DELETE, INSERT, SELECT, UPDATE ON events.migrations TO svc_events;

CREATE TABLE events.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON events.secrets TO login_events;
GRANT DELETE, INSERT, SELECT, UPDATE ON events.secrets TO svc_events;

CREATE TABLE events.subscriptions (
  tenant_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  grant_id text NOT NULL,
  name text NOT NULL,
  url text NOT NULL,
  event_types text[] NOT NULL,
  objects text[] NOT NULL,
  payload text NOT NULL,
  ordering text NOT NULL,
  signing text NOT NULL,
  state text DEFAULT 'active'::text NOT NULL,
  reason text,
  version integer DEFAULT 1 NOT NULL,
  secrets jsonb NOT NULL,
  public_key text,
  "position" bigint NOT NULL,
  failing_since timestamp(3) with time zone,
  failure_count integer DEFAULT 0 NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT subscriptions_ordering_check CHECK ((ordering = ANY (ARRAY['none'::text, 'perRecord'::text]))),
  CONSTRAINT subscriptions_payload_check CHECK ((payload = ANY (ARRAY['thin'::text, 'full'::text]))),
  CONSTRAINT subscriptions_signing_check CHECK ((signing = ANY (ARRAY['hmac'::text, 'ed25519'::text]))),
  CONSTRAINT subscriptions_state_check CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'suspended'::text]))),
  CONSTRAINT subscriptions_pkey PRIMARY KEY (tenant_id, subscription_id)
);
ALTER TABLE events.subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE events.subscriptions FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON events.subscriptions TO login_events;
GRANT DELETE, INSERT, SELECT, UPDATE ON events.subscriptions TO svc_events;

CREATE INDEX deliveries_due ON events.deliveries USING btree (tenant_id, subscription_id, subject, sequence) WHERE (status = 'pending'::text);

CREATE INDEX deliveries_old ON events.deliveries USING btree (tenant_id, created_at);

CREATE UNIQUE INDEX deliveries_once ON events.deliveries USING btree (tenant_id, subscription_id, sequence);

CREATE INDEX deliveries_parked ON events.deliveries USING btree (tenant_id, subscription_id) WHERE (status = 'parked'::text);

CREATE POLICY numbers ON events.deliveries AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON events.deliveries AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY numbers ON events.subscriptions AS PERMISSIVE FOR SELECT TO postgres USING true;

CREATE POLICY tenant ON events.subscriptions AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION events.numbers() RETURNS TABLE(due integer, waiting integer, parked integer, oldest_due timestamp with time zone) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 2a7e96c23977
GRANT EXECUTE ON FUNCTION events.numbers() TO login_events;
