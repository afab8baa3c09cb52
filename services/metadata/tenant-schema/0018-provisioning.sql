-- What provisioning clients (SCIM) call users and groups: each client has its own ids for them, which mean nothing to
-- others. `resource_id` is the id of a user or the apiName of a permission set.
CREATE TABLE _external_ids (
  client_id   text NOT NULL,
  resource    text NOT NULL CHECK (resource IN ('User', 'Group')),
  resource_id text NOT NULL,
  external_id text NOT NULL,
  PRIMARY KEY (client_id, resource, resource_id)
);
CREATE INDEX _external_ids_by_id ON _external_ids (client_id, resource, external_id);

-- Users that a provisioning client has deleted: they are deactivated, and as long as they are, provisioning does not
-- see them.
CREATE TABLE _deprovisioned_users (
  user_id uuid        PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now()
);

DO $$
BEGIN
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON _external_ids, _deprovisioned_users TO %I', current_schema());
END $$;
