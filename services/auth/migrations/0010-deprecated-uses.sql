-- Which clients of a tenant call operations that are going to be gone, by day (UTC). Kept for as long as anybody asks.
CREATE TABLE auth.deprecated_uses (
  tenant_id uuid NOT NULL,
  operation_id text NOT NULL,
  client_id text NOT NULL,
  day date NOT NULL,
  requests bigint NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, operation_id, client_id, day)
);
CREATE INDEX deprecated_uses_day ON auth.deprecated_uses (day);
ALTER TABLE auth.deprecated_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.deprecated_uses FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON auth.deprecated_uses
  USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON auth.deprecated_uses TO CURRENT_USER USING (true) WITH CHECK (true);
