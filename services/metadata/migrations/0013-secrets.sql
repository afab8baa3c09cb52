-- Secrets that every process of the service shares and no restart may change: the key that cursors are sealed with, where
-- the deployment has no secret of its own.
CREATE TABLE metadata.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
