-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA calendar;
GRANT USAGE ON SCHEMA calendar TO login_calendar;
GRANT USAGE ON SCHEMA calendar TO svc_calendar;

CREATE TABLE calendar.calendars (
  tenant_id uuid NOT NULL,
  calendar_id uuid NOT NULL,
  "position" bigint DEFAULT 0 NOT NULL,
  events integer DEFAULT 0 NOT NULL,
  CONSTRAINT calendars_pkey PRIMARY KEY (tenant_id, calendar_id)
);
ALTER TABLE calendar.calendars ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar.calendars FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON calendar.calendars TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.calendars TO svc_calendar;

CREATE TABLE calendar.entries (
  tenant_id uuid NOT NULL,
  calendar_id uuid NOT NULL,
  event_id uuid NOT NULL,
  "position" bigint NOT NULL,
  first_at timestamp(3) with time zone NOT NULL,
  last_at timestamp(3) with time zone NOT NULL,
  removed_at timestamp(3) with time zone,
  CONSTRAINT entries_pkey PRIMARY KEY (tenant_id, calendar_id, event_id)
);
ALTER TABLE calendar.entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar.entries FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON calendar.entries TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.entries TO svc_calendar;

CREATE TABLE calendar.events (
  tenant_id uuid NOT NULL,
  event_id uuid NOT NULL,
  calendar_id uuid NOT NULL,
  version integer DEFAULT 1 NOT NULL,
  sequence integer DEFAULT 0 NOT NULL,
  start_local text NOT NULL,
  start_timezone text,
  end_local text NOT NULL,
  end_timezone text,
  recurrence jsonb,
  content jsonb NOT NULL,
  attendees jsonb NOT NULL,
  object_api_name text,
  record_id uuid,
  first_at timestamp(3) with time zone NOT NULL,
  last_at timestamp(3) with time zone NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  updated_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (tenant_id, event_id)
);
ALTER TABLE calendar.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar.events FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON calendar.events TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.events TO svc_calendar;

CREATE TABLE calendar.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON calendar.migrations TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.migrations TO svc_calendar;

CREATE TABLE calendar.overrides (
  tenant_id uuid NOT NULL,
  event_id uuid NOT NULL,
  original_start text NOT NULL,
  patch jsonb NOT NULL,
  responses jsonb NOT NULL,
  start_local text NOT NULL,
  CONSTRAINT overrides_tenant_id_event_id_fkey FOREIGN KEY (tenant_id, event_id) REFERENCES calendar.events(tenant_id, event_id) ON DELETE CASCADE,
  CONSTRAINT overrides_pkey PRIMARY KEY (tenant_id, event_id, original_start)
);
ALTER TABLE calendar.overrides ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar.overrides FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON calendar.overrides TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.overrides TO svc_calendar;

CREATE TABLE calendar.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON calendar.secrets TO login_calendar;
GRANT DELETE, INSERT, SELECT, UPDATE ON calendar.secrets TO svc_calendar;

CREATE INDEX entries_event ON calendar.entries USING btree (tenant_id, event_id);

CREATE INDEX entries_position ON calendar.entries USING btree (tenant_id, calendar_id, "position");

CREATE INDEX entries_removed ON calendar.entries USING btree (tenant_id, removed_at) WHERE (removed_at IS NOT NULL);

CREATE INDEX entries_time ON calendar.entries USING btree (tenant_id, calendar_id, last_at, first_at) WHERE (removed_at IS NULL);

CREATE INDEX events_record ON calendar.events USING btree (tenant_id, record_id, object_api_name, event_id) WHERE (record_id IS NOT NULL);

CREATE POLICY tenant ON calendar.calendars AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON calendar.entries AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON calendar.events AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON calendar.overrides AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);
