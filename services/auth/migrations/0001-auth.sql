-- Credentials, grants, protocol artefacts and keys of auth.
--
-- Tables with tenant_id are under row-level security: work for a known tenant runs as svc_auth and sees that tenant
-- alone. A sign-in begins before the tenant is known (a username, a grant id or a link's token arrives from outside),
-- so the login role, which no tenant's work ever runs as, may look across; the policy `directory` says so in one place.

CREATE TABLE auth.credentials (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  username text NOT NULL,
  email text NOT NULL,
  password_hash text,
  active boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  last_sign_in_at timestamptz,
  PRIMARY KEY (tenant_id, user_id)
);
-- One sign-in page serves all tenants, so a username names one user of the whole platform.
CREATE UNIQUE INDEX credentials_username ON auth.credentials (lower(username));
CREATE UNIQUE INDEX credentials_user ON auth.credentials (user_id);

-- One authorization of one client by one user. payload is what oidc-provider keeps about it.
CREATE TABLE auth.grants (
  tenant_id uuid NOT NULL,
  id text NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX grants_id ON auth.grants (id);
CREATE INDEX grants_user ON auth.grants (tenant_id, user_id);
CREATE INDEX grants_expires ON auth.grants (expires_at);

-- Only hashes: the secret itself is shown once, when it is made.
CREATE TABLE auth.client_secrets (
  tenant_id uuid NOT NULL,
  api_name text NOT NULL,
  secret_hash bytea NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, api_name)
);

CREATE TABLE auth.password_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE UNIQUE INDEX password_links_token ON auth.password_links (token_hash);
CREATE INDEX password_links_user ON auth.password_links (tenant_id, user_id);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['credentials', 'grants', 'client_secrets', 'password_links'] LOOP
    EXECUTE format('ALTER TABLE auth.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE auth.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format(
      'CREATE POLICY tenant ON auth.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY directory ON auth.%I TO CURRENT_USER USING (true) WITH CHECK (true)', t);
  END LOOP;
END $$;

-- Short-lived artefacts of the protocol (codes, refresh tokens, browser sessions, interactions), reached by an
-- unguessable id alone. Ids of those that are secrets by themselves are stored as SHA-256.
CREATE TABLE auth.artifacts (
  model text NOT NULL,
  id text NOT NULL,
  payload jsonb NOT NULL,
  grant_id text,
  account_id text,
  uid text,
  user_code text,
  consumed_at timestamptz,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (model, id)
);
CREATE INDEX artifacts_grant ON auth.artifacts (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX artifacts_account ON auth.artifacts (account_id) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX artifacts_user_code ON auth.artifacts (user_code) WHERE user_code IS NOT NULL;
CREATE INDEX artifacts_uid ON auth.artifacts (uid) WHERE uid IS NOT NULL;
CREATE INDEX artifacts_expires ON auth.artifacts (expires_at);

-- Failed sign-ins by username and by network address. A username that does not exist counts like one that does.
CREATE TABLE auth.attempts (
  key text PRIMARY KEY,
  failures integer NOT NULL,
  blocked_until timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);

-- Signing keys and the key of cookie signatures: sealed when the deployment has a secret, else as they are.
CREATE TABLE auth.keys (
  kid text PRIMARY KEY,
  purpose text NOT NULL CHECK (purpose IN ('signing', 'cookies')),
  plain jsonb,
  sealed bytea,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  retired_at timestamptz,
  CHECK ((plain IS NULL) <> (sealed IS NULL))
);
