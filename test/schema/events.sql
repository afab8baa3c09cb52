-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA events;
GRANT USAGE ON SCHEMA events TO login_events;
GRANT USAGE ON SCHEMA events TO svc_events;

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
