-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA analytics;
GRANT USAGE ON SCHEMA analytics TO login_analytics;
GRANT USAGE ON SCHEMA analytics TO svc_analytics;

CREATE TABLE analytics.dashboard_shares (
  tenant_id uuid NOT NULL,
  dashboard_id uuid NOT NULL,
  principal_type text NOT NULL,
  principal_id text NOT NULL,
  access text NOT NULL,
  "position" integer NOT NULL,
  CONSTRAINT dashboard_shares_access_check CHECK ((access = ANY (ARRAY['view'::text, 'edit'::text]))),
  CONSTRAINT dashboard_shares_principal_type_check CHECK ((principal_type = ANY (ARRAY['user'::text, 'role'::text, 'group'::text]))),
  CONSTRAINT dashboard_shares_tenant_id_dashboard_id_fkey FOREIGN KEY (tenant_id, dashboard_id) REFERENCES analytics.dashboards(tenant_id, dashboard_id) ON DELETE CASCADE,
  CONSTRAINT dashboard_shares_pkey PRIMARY KEY (tenant_id, dashboard_id, principal_type, principal_id)
);
ALTER TABLE analytics.dashboard_shares ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.dashboard_shares FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON analytics.dashboard_shares TO login_analytics;
GRANT DELETE, INSERT, SELECT, UPDATE ON analytics.dashboard_shares TO svc_analytics;

CREATE TABLE analytics.dashboard_versions (
  tenant_id uuid NOT NULL,
  dashboard_id uuid NOT NULL,
  version text NOT NULL,
  name text NOT NULL,
  description text,
  timezone text,
  widget_count integer NOT NULL,
  content json NOT NULL,
  CONSTRAINT dashboard_versions_version_check CHECK ((version = ANY (ARRAY['draft'::text, 'published'::text]))),
  CONSTRAINT dashboard_versions_tenant_id_dashboard_id_fkey FOREIGN KEY (tenant_id, dashboard_id) REFERENCES analytics.dashboards(tenant_id, dashboard_id) ON DELETE CASCADE,
  CONSTRAINT dashboard_versions_pkey PRIMARY KEY (tenant_id, dashboard_id, version)
);
ALTER TABLE analytics.dashboard_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.dashboard_versions FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON analytics.dashboard_versions TO login_analytics;
GRANT DELETE, INSERT, SELECT, UPDATE ON analytics.dashboard_versions TO svc_analytics;

CREATE TABLE analytics.dashboards (
  tenant_id uuid NOT NULL,
  dashboard_id uuid NOT NULL,
  owner_id uuid,
  api_name text,
  visibility text NOT NULL,
  revision integer DEFAULT 1 NOT NULL,
  published_revision integer,
  published_at timestamp(3) with time zone,
  published_by_id uuid,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  created_by_id uuid,
  updated_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  updated_by_id uuid,
  deleted_at timestamp(3) with time zone,
  deleted_by_id uuid,
  draft_revision integer,
  CONSTRAINT dashboards_visibility_check CHECK ((visibility = ANY (ARRAY['private'::text, 'shared'::text, 'public'::text]))),
  CONSTRAINT dashboards_pkey PRIMARY KEY (tenant_id, dashboard_id)
);
ALTER TABLE analytics.dashboards ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.dashboards FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON analytics.dashboards TO login_analytics;
GRANT DELETE, INSERT, SELECT, UPDATE ON analytics.dashboards TO svc_analytics;

CREATE TABLE analytics.deployed (
  tenant_id uuid NOT NULL,
  metadata_version integer NOT NULL,
  CONSTRAINT deployed_pkey PRIMARY KEY (tenant_id)
);
ALTER TABLE analytics.deployed ENABLE ROW LEVEL SECURITY;
ALTER TABLE analytics.deployed FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON analytics.deployed TO login_analytics;
GRANT DELETE, INSERT, SELECT, UPDATE ON analytics.deployed TO svc_analytics;

CREATE TABLE analytics.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON analytics.migrations TO login_analytics;
GRANT DELETE, INSERT, SELECT, UPDATE ON analytics.migrations TO svc_analytics;

CREATE UNIQUE INDEX dashboards_api_name ON analytics.dashboards USING btree (tenant_id, api_name) WHERE ((api_name IS NOT NULL) AND (deleted_at IS NULL));

CREATE INDEX dashboards_deleted ON analytics.dashboards USING btree (tenant_id, deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX dashboards_owner ON analytics.dashboards USING btree (tenant_id, owner_id) WHERE (deleted_at IS NULL);

CREATE POLICY tenant ON analytics.dashboard_shares AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON analytics.dashboard_versions AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON analytics.dashboards AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY tenant ON analytics.deployed AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);
