-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA platform;
GRANT USAGE ON SCHEMA platform TO login_agent;
GRANT USAGE ON SCHEMA platform TO login_analytics;
GRANT USAGE ON SCHEMA platform TO login_auth;
GRANT USAGE ON SCHEMA platform TO login_bulk;
GRANT USAGE ON SCHEMA platform TO login_calendar;
GRANT USAGE ON SCHEMA platform TO login_data;
GRANT USAGE ON SCHEMA platform TO login_events;
GRANT USAGE ON SCHEMA platform TO login_files;
GRANT USAGE ON SCHEMA platform TO login_gateway;
GRANT USAGE ON SCHEMA platform TO login_mcp;
GRANT USAGE ON SCHEMA platform TO login_metadata;
GRANT USAGE ON SCHEMA platform TO login_notifications;
GRANT USAGE ON SCHEMA platform TO login_ratelimit;

CREATE TABLE platform.installation (
  property text NOT NULL,
  value text NOT NULL,
  set_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT installation_pkey PRIMARY KEY (property)
);
GRANT INSERT, SELECT ON platform.installation TO login_agent;
GRANT INSERT, SELECT ON platform.installation TO login_analytics;
GRANT INSERT, SELECT, UPDATE ON platform.installation TO login_auth;
GRANT INSERT, SELECT ON platform.installation TO login_bulk;
GRANT INSERT, SELECT ON platform.installation TO login_calendar;
GRANT INSERT, SELECT ON platform.installation TO login_data;
GRANT INSERT, SELECT ON platform.installation TO login_events;
GRANT INSERT, SELECT ON platform.installation TO login_files;
GRANT INSERT, SELECT ON platform.installation TO login_gateway;
GRANT INSERT, SELECT ON platform.installation TO login_mcp;
GRANT INSERT, SELECT ON platform.installation TO login_metadata;
GRANT INSERT, SELECT ON platform.installation TO login_notifications;
GRANT INSERT, SELECT ON platform.installation TO login_ratelimit;

CREATE TABLE platform.tenant_logins (
  login text NOT NULL,
  as_owner boolean NOT NULL,
  CONSTRAINT tenant_logins_pkey PRIMARY KEY (login)
);
