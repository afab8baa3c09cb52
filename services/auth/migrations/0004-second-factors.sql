-- Passkeys, authenticator apps and recovery codes of users. A passkey is found by its credential id before any tenant is
-- known, like a username, so the ids are unique over all tenants.

CREATE TABLE auth.passkeys (
  tenant_id uuid NOT NULL,
  id text NOT NULL,
  user_id uuid NOT NULL,
  name text NOT NULL,
  public_key bytea NOT NULL,
  counter bigint NOT NULL,
  transports text[] NOT NULL,
  backup_eligible boolean NOT NULL,
  backed_up boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);
CREATE UNIQUE INDEX passkeys_id ON auth.passkeys (id);
CREATE INDEX passkeys_user ON auth.passkeys (tenant_id, user_id);

-- The secret of an authenticator app, sealed with the key of purpose `factors`. Each time step counts once.
CREATE TABLE auth.authenticators (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  sealed_secret bytea NOT NULL,
  last_step bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);

-- Only hashes: the codes are shown once, when they are made. A used one is deleted.
CREATE TABLE auth.recovery_codes (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, code_hash),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['passkeys', 'authenticators', 'recovery_codes'] LOOP
    EXECUTE format('ALTER TABLE auth.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE auth.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format(
      'CREATE POLICY tenant ON auth.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY directory ON auth.%I TO CURRENT_USER USING (true) WITH CHECK (true)', t);
  END LOOP;
END $$;

ALTER TABLE auth.keys DROP CONSTRAINT keys_purpose_check;
ALTER TABLE auth.keys ADD CONSTRAINT keys_purpose_check CHECK (purpose IN ('signing', 'cookies', 'factors'));
