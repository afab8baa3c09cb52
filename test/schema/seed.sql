-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA seed;
GRANT USAGE ON SCHEMA seed TO login_metadata;

CREATE TABLE seed.steps (
  tenant text NOT NULL,
  step text NOT NULL,
  fingerprint text NOT NULL,
  done_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT steps_pkey PRIMARY KEY (tenant, step)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON seed.steps TO login_metadata;
