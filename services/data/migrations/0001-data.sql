-- What the data service keeps for itself. Records and their companions live in the tenants' own schemas.

-- Secrets that every process of the service shares and no restart may change: the key that cursors are sealed with.
CREATE TABLE data.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
