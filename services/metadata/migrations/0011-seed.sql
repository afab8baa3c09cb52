-- Which steps of filling the demo tenants are done (templates/seed.ts).
CREATE SCHEMA IF NOT EXISTS seed;
CREATE TABLE IF NOT EXISTS seed.steps (
  tenant      text,
  step        text,
  fingerprint text        NOT NULL,
  done_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, step)
);
