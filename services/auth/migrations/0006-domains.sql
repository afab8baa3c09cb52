-- Mail domains of tenants, verified by an operator: a username in one of them is a user of that tenant and of no other.
CREATE TABLE auth.domains (
  tenant_id uuid NOT NULL,
  domain text NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, domain)
);
CREATE UNIQUE INDEX domains_domain ON auth.domains (domain);
ALTER TABLE auth.domains ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.domains FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON auth.domains
  USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON auth.domains TO CURRENT_USER USING (true) WITH CHECK (true);

-- A username is unique within its tenant. Those that exist were unique on the whole platform and are found by the name
-- alone as before; a new one is found by it in a domain of its tenant only.
DROP INDEX auth.credentials_username;
ALTER TABLE auth.credentials ADD COLUMN found_by_name boolean NOT NULL DEFAULT false;
UPDATE auth.credentials SET found_by_name = true;
CREATE UNIQUE INDEX credentials_username ON auth.credentials (tenant_id, lower(username));
CREATE UNIQUE INDEX credentials_found_by_name ON auth.credentials (lower(username)) WHERE found_by_name;
CREATE INDEX credentials_name ON auth.credentials (lower(username));
