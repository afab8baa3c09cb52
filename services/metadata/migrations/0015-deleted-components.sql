-- Deleted components, kept so that a rollback brings them back. As long as an object or a field is here, its table or its
-- column is still in the schema of the tenant and its name cannot be used for another one.
CREATE TABLE metadata.deleted_components (
  tenant_id          uuid           NOT NULL,
  type               text           NOT NULL,
  full_name          text           NOT NULL,
  path               text           NOT NULL,
  -- As the component was; see metadata.components.
  yaml               text           NOT NULL,
  body               json           NOT NULL,
  hash               text           NOT NULL,
  system             boolean        NOT NULL,
  -- The version without it, when and by whom it was made.
  deleted_at_version integer        NOT NULL,
  deleted_at         timestamptz(3) NOT NULL DEFAULT now(),
  deleted_by_id      uuid,
  deployment_id      uuid,
  PRIMARY KEY (tenant_id, type, full_name)
);
CREATE INDEX deleted_components_at ON metadata.deleted_components (deleted_at);

ALTER TABLE metadata.deleted_components ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.deleted_components FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON metadata.deleted_components
  USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
