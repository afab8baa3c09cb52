-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA data;
GRANT USAGE ON SCHEMA data TO login_data;
GRANT USAGE ON SCHEMA data TO svc_data;

CREATE TABLE data.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON data.migrations TO login_data;
GRANT DELETE, INSERT, SELECT, UPDATE ON data.migrations TO svc_data;

CREATE TABLE data.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON data.secrets TO login_data;
GRANT DELETE, INSERT, SELECT, UPDATE ON data.secrets TO svc_data;
