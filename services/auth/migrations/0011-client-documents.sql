-- Addresses of the Client ID Metadata Documents that each tenant's clients name, so that a request of such a client,
-- which names no tenant, costs one indexed look-up. Derived like the origins.
ALTER TABLE auth.tenant_origins ADD COLUMN documents text[] NOT NULL DEFAULT '{}';
CREATE INDEX tenant_origins_documents ON auth.tenant_origins USING gin (documents);
