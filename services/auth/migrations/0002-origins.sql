-- Browser origins of each tenant's clients, so that a CORS preflight, which names neither client nor tenant, costs one
-- indexed look-up. Derived from the tenants' configuration at metadata_version; can be filled again at any time.
CREATE TABLE auth.tenant_origins (
  tenant_id uuid PRIMARY KEY,
  metadata_version integer NOT NULL,
  origins text[] NOT NULL
);
CREATE INDEX tenant_origins_origins ON auth.tenant_origins USING gin (origins);
ALTER TABLE auth.tenant_origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.tenant_origins FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON auth.tenant_origins
  USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON auth.tenant_origins TO CURRENT_USER USING (true) WITH CHECK (true);
