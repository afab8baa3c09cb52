-- Which user a person at an OpenID provider is: by the provider's issuer and its subject, which never changes, and for one
-- tenant alone. A user has one identity at a provider.
CREATE TABLE auth.identities (
  tenant_id uuid NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, issuer, subject),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);
CREATE UNIQUE INDEX identities_user ON auth.identities (tenant_id, user_id, issuer);

-- The secret by which a provider knows the platform, sealed by the deployment. It is one for this issuer and client id:
-- a configuration that names another address does not take it there.
CREATE TABLE auth.provider_secrets (
  tenant_id uuid NOT NULL,
  api_name text NOT NULL,
  issuer text NOT NULL,
  client_id text NOT NULL,
  plain jsonb,
  sealed bytea,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, api_name),
  CHECK ((plain IS NULL) <> (sealed IS NULL))
);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['identities', 'provider_secrets'] LOOP
    EXECUTE format('ALTER TABLE auth.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE auth.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format(
      'CREATE POLICY tenant ON auth.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY directory ON auth.%I TO CURRENT_USER USING (true) WITH CHECK (true)', t);
  END LOOP;
END $$;
