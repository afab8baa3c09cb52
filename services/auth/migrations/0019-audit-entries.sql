-- Entries on their way to the audit trails of tenants, which data writes: each is put here in the transaction of what it is
-- about, and removed once the trail has it (docs/reference/audit.md).
CREATE TABLE auth.audit_entries (
  tenant_id  uuid        NOT NULL,
  audit_id   uuid        NOT NULL,
  entry      jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, audit_id)
);
CREATE INDEX audit_entries_order ON auth.audit_entries (audit_id);
ALTER TABLE auth.audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.audit_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON auth.audit_entries
  USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON auth.audit_entries TO CURRENT_USER USING (true) WITH CHECK (true);

-- Set once the link is used up: with it the same form, sent again because its answer was lost, is recognized. An HMAC over the
-- password, of which the form alone has the key.
ALTER TABLE auth.password_links ADD COLUMN used_with bytea;
