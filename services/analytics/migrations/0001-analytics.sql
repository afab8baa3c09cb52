-- Dashboards of tenants.
CREATE TABLE analytics.dashboards (
  tenant_id          uuid           NOT NULL,
  dashboard_id       uuid           NOT NULL,
  -- NULL: the platform, by a template.
  owner_id           uuid,
  -- Of the component that deploys it; NULL: created through the API.
  api_name           text,
  visibility         text           NOT NULL CHECK (visibility IN ('private', 'shared', 'public')),
  -- Incremented by every change, including those of visibility and shares.
  revision           integer        NOT NULL DEFAULT 1,
  published_revision integer,
  published_at       timestamptz(3),
  published_by_id    uuid,
  created_at         timestamptz(3) NOT NULL DEFAULT now(),
  created_by_id      uuid,
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  updated_by_id      uuid,
  -- Deleted dashboards are retained for a while.
  deleted_at         timestamptz(3),
  deleted_by_id      uuid,
  -- Revision of the last change of the draft; NULL: that of the dashboard.
  draft_revision     integer,
  PRIMARY KEY (tenant_id, dashboard_id)
);
CREATE UNIQUE INDEX dashboards_api_name ON analytics.dashboards (tenant_id, api_name)
  WHERE api_name IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX dashboards_owner ON analytics.dashboards (tenant_id, owner_id) WHERE deleted_at IS NULL;
CREATE INDEX dashboards_deleted ON analytics.dashboards (tenant_id, deleted_at) WHERE deleted_at IS NOT NULL;

-- Content of a dashboard: the draft that editors change, and the published version.
CREATE TABLE analytics.dashboard_versions (
  tenant_id    uuid    NOT NULL,
  dashboard_id uuid    NOT NULL,
  version      text    NOT NULL CHECK (version IN ('draft', 'published')),
  name         text    NOT NULL,
  description  text,
  timezone     text,
  widget_count integer NOT NULL,
  -- {filters, widgets}; json keeps the order of keys.
  content      json    NOT NULL,
  PRIMARY KEY (tenant_id, dashboard_id, version),
  FOREIGN KEY (tenant_id, dashboard_id) REFERENCES analytics.dashboards ON DELETE CASCADE
);

-- Users, roles and groups that a dashboard is shared with.
CREATE TABLE analytics.dashboard_shares (
  tenant_id      uuid    NOT NULL,
  dashboard_id   uuid    NOT NULL,
  principal_type text    NOT NULL CHECK (principal_type IN ('user', 'role', 'group')),
  -- Id of a user, apiName of a role or group.
  principal_id   text    NOT NULL,
  access         text    NOT NULL CHECK (access IN ('view', 'edit')),
  -- Place in the list.
  position       integer NOT NULL,
  PRIMARY KEY (tenant_id, dashboard_id, principal_type, principal_id),
  FOREIGN KEY (tenant_id, dashboard_id) REFERENCES analytics.dashboards ON DELETE CASCADE
);

-- The version of a tenant's configuration whose dashboards are stored here.
CREATE TABLE analytics.deployed (
  tenant_id        uuid    PRIMARY KEY,
  metadata_version integer NOT NULL
);

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['dashboards', 'dashboard_versions', 'dashboard_shares', 'deployed'] LOOP
    EXECUTE format('ALTER TABLE analytics.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE analytics.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON analytics.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
  END LOOP;
END $$;
