-- Elsewhere `tenant_id` says whose a row is; here it is the row's own id.
ALTER TABLE metadata.tenants RENAME COLUMN tenant_id TO id;
