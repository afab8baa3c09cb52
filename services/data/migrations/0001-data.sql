-- Data of the service itself. Records and their companions are in the schemas of tenants.

-- Secrets shared by all processes of the service across restarts: the key that seals cursors, unless the deployment sets
-- its own.
CREATE TABLE data.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
