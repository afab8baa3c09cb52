-- Keys that seal cursors and sync tokens.
CREATE TABLE calendar.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);

-- A calendar is that of a user, and has the user's id. It is there from the first change on.
CREATE TABLE calendar.calendars (
  tenant_id   uuid    NOT NULL,
  calendar_id uuid    NOT NULL,
  -- Of its last change. Whoever changes an entry holds the row until the end of the transaction, so that positions are
  -- committed in their order.
  position    bigint  NOT NULL DEFAULT 0,
  -- That its user organizes.
  events      integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, calendar_id)
);

-- Single events and series. Local times are texts such as 2026-11-21T09:30:00: with the time zone they say the moment,
-- also after the rules of the zone were changed.
CREATE TABLE calendar.events (
  tenant_id       uuid           NOT NULL,
  event_id        uuid           NOT NULL,
  -- Of the organizer.
  calendar_id     uuid           NOT NULL,
  version         integer        NOT NULL DEFAULT 1,
  sequence        integer        NOT NULL DEFAULT 0,
  start_local     text           NOT NULL,
  -- null: whole days.
  start_timezone  text,
  end_local       text           NOT NULL,
  end_timezone    text,
  -- Of recurrence/rule.ts.
  recurrence      jsonb,
  -- What else the event says.
  content         jsonb          NOT NULL,
  attendees       jsonb          NOT NULL,
  object_api_name text,
  record_id       uuid,
  -- All of its instances lie within; a day is added on both sides where they are compared with moments.
  first_at        timestamptz(3) NOT NULL,
  last_at         timestamptz(3) NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, event_id)
);
CREATE INDEX events_record ON calendar.events (tenant_id, record_id, object_api_name, event_id) WHERE record_id IS NOT NULL;

-- Instances that differ from their series: what is different in them, and answers to them alone.
CREATE TABLE calendar.overrides (
  tenant_id      uuid  NOT NULL,
  event_id       uuid  NOT NULL,
  original_start text  NOT NULL,
  patch          jsonb NOT NULL,
  responses      jsonb NOT NULL,
  -- Where it was moved to; otherwise where it was.
  start_local    text  NOT NULL,
  PRIMARY KEY (tenant_id, event_id, original_start),
  FOREIGN KEY (tenant_id, event_id) REFERENCES calendar.events ON DELETE CASCADE
);

-- Events in the calendars of their organizer and of the users who attend.
CREATE TABLE calendar.entries (
  tenant_id   uuid   NOT NULL,
  calendar_id uuid   NOT NULL,
  event_id    uuid   NOT NULL,
  -- Of its last change in the calendar.
  position    bigint NOT NULL,
  -- As of the event.
  first_at    timestamptz(3) NOT NULL,
  last_at     timestamptz(3) NOT NULL,
  -- It is no longer there; remembered for those who synchronize.
  removed_at  timestamptz(3),
  PRIMARY KEY (tenant_id, calendar_id, event_id)
);
CREATE INDEX entries_position ON calendar.entries (tenant_id, calendar_id, position);
CREATE INDEX entries_time ON calendar.entries (tenant_id, calendar_id, last_at, first_at) WHERE removed_at IS NULL;
CREATE INDEX entries_event ON calendar.entries (tenant_id, event_id);
CREATE INDEX entries_removed ON calendar.entries (tenant_id, removed_at) WHERE removed_at IS NOT NULL;

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['calendars', 'events', 'overrides', 'entries'] LOOP
    EXECUTE format('ALTER TABLE calendar.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE calendar.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON calendar.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;
