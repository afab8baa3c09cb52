-- What each version changed: a deployment is rolled back only while nothing later has touched the same components.
CREATE TABLE metadata.version_components (
  tenant_id uuid    NOT NULL,
  version   integer NOT NULL,
  type      text    NOT NULL,
  full_name text    NOT NULL,
  PRIMARY KEY (tenant_id, type, full_name, version)
);
CREATE INDEX version_components_version ON metadata.version_components (tenant_id, version);
ALTER TABLE metadata.version_components ENABLE ROW LEVEL SECURITY;
ALTER TABLE metadata.version_components FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON metadata.version_components
  USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE metadata.deployments
  ADD cancel_reason text,
  -- Changed components that cannot be restored: [{type, fullName}].
  ADD irreversible jsonb NOT NULL DEFAULT '[]',
  -- Its files, its inverse plan and a large plan are not kept any more.
  ADD forgotten boolean NOT NULL DEFAULT false;
CREATE INDEX deployments_kept ON metadata.deployments (tenant_id, queue_number) WHERE NOT forgotten;
