-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA auth;
GRANT USAGE ON SCHEMA auth TO login_auth;
GRANT USAGE ON SCHEMA auth TO svc_auth;
GRANT USAGE ON SCHEMA auth TO svc_calendar;
GRANT USAGE ON SCHEMA auth TO svc_data;

CREATE TABLE auth.address_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  address text NOT NULL,
  earlier_address text,
  sent_at timestamp with time zone,
  applied_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT address_links_pkey PRIMARY KEY (tenant_id, token_hash)
);
ALTER TABLE auth.address_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.address_links FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.address_links TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.address_links TO svc_auth;

CREATE TABLE auth.artifacts (
  model text NOT NULL,
  id text NOT NULL,
  payload jsonb NOT NULL,
  grant_id text,
  account_id text,
  uid text,
  user_code text,
  consumed_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  network text,
  polled_at timestamp with time zone,
  poll_seconds integer,
  CONSTRAINT artifacts_pkey PRIMARY KEY (model, id)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.artifacts TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.artifacts TO svc_auth;

CREATE TABLE auth.attempts (
  key text NOT NULL,
  failures integer NOT NULL,
  blocked_until timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT attempts_pkey PRIMARY KEY (key)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.attempts TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.attempts TO svc_auth;

CREATE TABLE auth.audit_entries (
  tenant_id uuid NOT NULL,
  audit_id uuid NOT NULL,
  entry jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT audit_entries_pkey PRIMARY KEY (tenant_id, audit_id)
);
ALTER TABLE auth.audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.audit_entries FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.audit_entries TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.audit_entries TO svc_auth;

CREATE TABLE auth.authenticators (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  sealed_secret bytea NOT NULL,
  last_step bigint NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT authenticators_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials(tenant_id, user_id) ON DELETE CASCADE,
  CONSTRAINT authenticators_pkey PRIMARY KEY (tenant_id, user_id)
);
ALTER TABLE auth.authenticators ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.authenticators FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.authenticators TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.authenticators TO svc_auth;

CREATE TABLE auth.calendar_links (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT calendar_links_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials(tenant_id, user_id) ON DELETE CASCADE,
  CONSTRAINT calendar_links_pkey PRIMARY KEY (tenant_id, user_id)
);
ALTER TABLE auth.calendar_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.calendar_links FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.calendar_links TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.calendar_links TO svc_auth;

CREATE TABLE auth.client_secrets (
  tenant_id uuid NOT NULL,
  api_name text NOT NULL,
  secret_hash bytea NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT client_secrets_pkey PRIMARY KEY (tenant_id, api_name)
);
ALTER TABLE auth.client_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.client_secrets FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.client_secrets TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.client_secrets TO svc_auth;

CREATE TABLE auth.credentials (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  username text NOT NULL,
  email text NOT NULL,
  password_hash text,
  active boolean NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  last_sign_in_at timestamp with time zone,
  invited_at timestamp with time zone,
  pending_email text,
  refused_email text,
  signed_in_at timestamp with time zone,
  session_generation integer DEFAULT 1 NOT NULL,
  CONSTRAINT credentials_pkey PRIMARY KEY (tenant_id, user_id)
);
ALTER TABLE auth.credentials ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.credentials FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.credentials TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.credentials TO svc_auth;

CREATE TABLE auth.deprecated_uses (
  tenant_id uuid NOT NULL,
  operation_id text NOT NULL,
  client_id text NOT NULL,
  day date NOT NULL,
  requests bigint NOT NULL,
  last_used_at timestamp with time zone NOT NULL,
  CONSTRAINT deprecated_uses_pkey PRIMARY KEY (tenant_id, operation_id, client_id, day)
);
ALTER TABLE auth.deprecated_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.deprecated_uses FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.deprecated_uses TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.deprecated_uses TO svc_auth;

CREATE TABLE auth.domains (
  tenant_id uuid NOT NULL,
  domain text NOT NULL,
  added_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT domains_pkey PRIMARY KEY (tenant_id, domain)
);
ALTER TABLE auth.domains ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.domains FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.domains TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.domains TO svc_auth;

CREATE TABLE auth.grants (
  tenant_id uuid NOT NULL,
  id text NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, id)
);
ALTER TABLE auth.grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.grants FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.grants TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.grants TO svc_auth;

CREATE TABLE auth.identities (
  tenant_id uuid NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT identities_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials(tenant_id, user_id) ON DELETE CASCADE,
  CONSTRAINT identities_pkey PRIMARY KEY (tenant_id, issuer, subject)
);
ALTER TABLE auth.identities ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.identities FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.identities TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.identities TO svc_auth;

CREATE TABLE auth.keys (
  kid text NOT NULL,
  purpose text NOT NULL,
  plain jsonb,
  sealed bytea,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  retired_at timestamp with time zone,
  CONSTRAINT keys_check CHECK (((plain IS NULL) <> (sealed IS NULL))),
  CONSTRAINT keys_purpose_check CHECK ((purpose = ANY (ARRAY['signing'::text, 'cookies'::text, 'factors'::text]))),
  CONSTRAINT keys_pkey PRIMARY KEY (kid)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.keys TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.keys TO svc_auth;

CREATE TABLE auth.known_origins (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  origin bytea NOT NULL,
  last_used_at timestamp with time zone NOT NULL,
  CONSTRAINT known_origins_pkey PRIMARY KEY (tenant_id, user_id, origin)
);
ALTER TABLE auth.known_origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.known_origins FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.known_origins TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.known_origins TO svc_auth;

CREATE TABLE auth.mails (
  tenant_id uuid NOT NULL,
  id uuid DEFAULT gen_random_uuid() NOT NULL,
  user_id uuid NOT NULL,
  kind text NOT NULL,
  address text,
  address_hash bytea NOT NULL,
  details jsonb,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  due_at timestamp with time zone DEFAULT now() NOT NULL,
  give_up_at timestamp with time zone NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  ended_at timestamp with time zone,
  outcome text,
  approval_id uuid,
  notifications_id uuid,
  CONSTRAINT mails_check CHECK (((ended_at IS NULL) = (outcome IS NULL))),
  CONSTRAINT mails_outcome_check CHECK ((outcome = ANY (ARRAY['sent'::text, 'refused'::text, 'gaveUp'::text, 'needless'::text]))),
  CONSTRAINT mails_pkey PRIMARY KEY (tenant_id, id)
);
ALTER TABLE auth.mails ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.mails FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.mails TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.mails TO svc_auth;

CREATE TABLE auth.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON auth.migrations TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.migrations TO svc_auth;

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
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone,
  CONSTRAINT passkeys_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials(tenant_id, user_id) ON DELETE CASCADE,
  CONSTRAINT passkeys_pkey PRIMARY KEY (tenant_id, id)
);
ALTER TABLE auth.passkeys ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.passkeys FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.passkeys TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.passkeys TO svc_auth;

CREATE TABLE auth.password_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  made_by uuid,
  used_with bytea,
  CONSTRAINT password_links_pkey PRIMARY KEY (tenant_id, token_hash)
);
ALTER TABLE auth.password_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.password_links FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.password_links TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.password_links TO svc_auth;

CREATE TABLE auth.provider_secrets (
  tenant_id uuid NOT NULL,
  api_name text NOT NULL,
  issuer text NOT NULL,
  client_id text NOT NULL,
  plain jsonb,
  sealed bytea,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT provider_secrets_check CHECK (((plain IS NULL) <> (sealed IS NULL))),
  CONSTRAINT provider_secrets_pkey PRIMARY KEY (tenant_id, api_name)
);
ALTER TABLE auth.provider_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.provider_secrets FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.provider_secrets TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.provider_secrets TO svc_auth;

CREATE TABLE auth.recovery_codes (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  CONSTRAINT recovery_codes_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials(tenant_id, user_id) ON DELETE CASCADE,
  CONSTRAINT recovery_codes_pkey PRIMARY KEY (tenant_id, user_id, code_hash)
);
ALTER TABLE auth.recovery_codes ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.recovery_codes FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.recovery_codes TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.recovery_codes TO svc_auth;

CREATE TABLE auth.reset_requests (
  id uuid NOT NULL,
  plain jsonb,
  sealed bytea,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  due_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT reset_requests_check CHECK (((plain IS NULL) <> (sealed IS NULL))),
  CONSTRAINT reset_requests_pkey PRIMARY KEY (id)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.reset_requests TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.reset_requests TO svc_auth;

CREATE TABLE auth.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.secrets TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.secrets TO svc_auth;

CREATE TABLE auth.tenant_origins (
  tenant_id uuid NOT NULL,
  metadata_version integer NOT NULL,
  origins text[] NOT NULL,
  documents text[] DEFAULT '{}'::text[] NOT NULL,
  CONSTRAINT tenant_origins_pkey PRIMARY KEY (tenant_id)
);
ALTER TABLE auth.tenant_origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.tenant_origins FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON auth.tenant_origins TO login_auth;
GRANT DELETE, INSERT, SELECT, UPDATE ON auth.tenant_origins TO svc_auth;

CREATE UNIQUE INDEX address_links_token ON auth.address_links USING btree (token_hash);

CREATE INDEX address_links_user ON auth.address_links USING btree (tenant_id, user_id);

CREATE INDEX artifacts_account ON auth.artifacts USING btree (account_id) WHERE (account_id IS NOT NULL);

CREATE INDEX artifacts_expires ON auth.artifacts USING btree (expires_at);

CREATE INDEX artifacts_grant ON auth.artifacts USING btree (grant_id) WHERE (grant_id IS NOT NULL);

CREATE INDEX artifacts_network ON auth.artifacts USING btree (network, model, expires_at) WHERE (network IS NOT NULL);

CREATE INDEX artifacts_uid ON auth.artifacts USING btree (uid) WHERE (uid IS NOT NULL);

CREATE UNIQUE INDEX artifacts_user_code ON auth.artifacts USING btree (user_code) WHERE (user_code IS NOT NULL);

CREATE INDEX audit_entries_order ON auth.audit_entries USING btree (audit_id);

CREATE UNIQUE INDEX calendar_links_token ON auth.calendar_links USING btree (token_hash);

CREATE INDEX credentials_name ON auth.credentials USING btree (lower(username));

CREATE UNIQUE INDEX credentials_user ON auth.credentials USING btree (user_id);

CREATE UNIQUE INDEX credentials_username ON auth.credentials USING btree (tenant_id, lower(username));

CREATE INDEX deprecated_uses_day ON auth.deprecated_uses USING btree (day);

CREATE UNIQUE INDEX domains_domain ON auth.domains USING btree (domain);

CREATE INDEX grants_expires ON auth.grants USING btree (expires_at);

CREATE UNIQUE INDEX grants_id ON auth.grants USING btree (id);

CREATE INDEX grants_user ON auth.grants USING btree (tenant_id, user_id, created_at, id);

CREATE UNIQUE INDEX identities_user ON auth.identities USING btree (tenant_id, user_id, issuer);

CREATE INDEX known_origins_used ON auth.known_origins USING btree (last_used_at);

CREATE INDEX mails_address ON auth.mails USING btree (address_hash, created_at);

CREATE UNIQUE INDEX mails_approval ON auth.mails USING btree (tenant_id, approval_id, user_id) WHERE (approval_id IS NOT NULL);

CREATE INDEX mails_due ON auth.mails USING btree (due_at) WHERE (ended_at IS NULL);

CREATE INDEX mails_ended ON auth.mails USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX mails_events ON auth.mails USING btree (tenant_id, address_hash, created_at) WHERE ((ended_at IS NULL) AND (kind = 'calendarEvent'::text));

CREATE UNIQUE INDEX mails_notifications ON auth.mails USING btree (tenant_id, notifications_id) WHERE (notifications_id IS NOT NULL);

CREATE INDEX mails_tenant ON auth.mails USING btree (tenant_id, created_at);

CREATE UNIQUE INDEX passkeys_id ON auth.passkeys USING btree (id);

CREATE INDEX passkeys_user ON auth.passkeys USING btree (tenant_id, user_id);

CREATE UNIQUE INDEX password_links_token ON auth.password_links USING btree (token_hash);

CREATE INDEX password_links_user ON auth.password_links USING btree (tenant_id, user_id);

CREATE INDEX reset_requests_due ON auth.reset_requests USING btree (due_at);

CREATE INDEX tenant_origins_documents ON auth.tenant_origins USING gin (documents);

CREATE INDEX tenant_origins_origins ON auth.tenant_origins USING gin (origins);

CREATE POLICY directory ON auth.address_links AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.address_links AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.address_links AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.audit_entries AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.audit_entries AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.audit_entries AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.authenticators AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.authenticators AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.authenticators AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.calendar_links AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.calendar_links AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.calendar_links AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.client_secrets AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.client_secrets AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.client_secrets AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.credentials AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.credentials AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.credentials AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.deprecated_uses AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.deprecated_uses AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.deprecated_uses AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.domains AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.domains AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.domains AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.grants AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.grants AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.grants AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.identities AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.identities AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.identities AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.known_origins AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.known_origins AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.known_origins AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.mails AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.mails AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.mails AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.passkeys AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.passkeys AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.passkeys AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.password_links AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.password_links AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.password_links AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.provider_secrets AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.provider_secrets AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.provider_secrets AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.recovery_codes AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.recovery_codes AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.recovery_codes AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON auth.tenant_origins AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON auth.tenant_origins AS PERMISSIVE FOR ALL TO login_auth USING true WITH CHECK true;

CREATE POLICY tenant ON auth.tenant_origins AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION auth.add_password_link(uuid,uuid,uuid,bytea,integer) RETURNS timestamp with time zone LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body ded52041c7d2
GRANT EXECUTE ON FUNCTION auth.add_password_link(uuid,uuid,uuid,bytea,integer) TO svc_data;

CREATE FUNCTION auth.end_grant(uuid,uuid,text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body f93b999160b1
GRANT EXECUTE ON FUNCTION auth.end_grant(uuid,uuid,text) TO svc_data;

CREATE FUNCTION auth.living_grants(uuid,text[]) RETURNS TABLE(id text, user_id uuid, client_id text, authentication text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body a9b4d7a8b3e8
GRANT EXECUTE ON FUNCTION auth.living_grants(uuid,text[]) TO svc_data;

CREATE FUNCTION auth.queue_calendar_mail(uuid,uuid,text,jsonb) RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 835dd130f029
GRANT EXECUTE ON FUNCTION auth.queue_calendar_mail(uuid,uuid,text,jsonb) TO svc_calendar;

CREATE FUNCTION auth.queue_invitation(uuid,uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 1188935a2f0e
GRANT EXECUTE ON FUNCTION auth.queue_invitation(uuid,uuid) TO svc_data;

CREATE FUNCTION auth.queue_mail(uuid,uuid,text,text,jsonb,integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 376bb9b609d9
GRANT EXECUTE ON FUNCTION auth.queue_mail(uuid,uuid,text,text,jsonb,integer) TO svc_auth;
