-- Credentials, grants, protocol artifacts, keys and mails of auth.
--
-- Tables with tenant_id are under row-level security: work for a known tenant runs as svc_auth and sees that tenant only. A
-- sign-in starts before the tenant is known, from a username, a grant id or the token of a link. For these lookups the policy
-- `directory` lets the login role see all tenants; work of a tenant never runs as that role.

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
  -- When the invitation was queued, or given up.
  invited_at timestamptz,
  -- Changed address of the record: links go to `email` until the user has confirmed the new one (docs/reference/mail.md).
  pending_email text,
  -- Address of the record that the user has refused by undoing the change. It is not proposed again until the record gets another.
  refused_email text,
  -- The last complete sign-in.
  signed_in_at timestamptz,
  -- Incremented when all sessions of the user end. A sign-in carries the number that it began with; with an older one it
  -- stores no session and no grant.
  session_generation integer NOT NULL DEFAULT 1,
  PRIMARY KEY (tenant_id, user_id)
);
CREATE UNIQUE INDEX credentials_user ON auth.credentials (user_id);
CREATE UNIQUE INDEX credentials_username ON auth.credentials (tenant_id, lower(username));
CREATE INDEX credentials_name ON auth.credentials (lower(username));

-- Mail domains of tenants, verified by an operator: a username in one of them belongs to a user of that tenant.
CREATE TABLE auth.domains (
  tenant_id uuid NOT NULL,
  domain text NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, domain)
);
CREATE UNIQUE INDEX domains_domain ON auth.domains (domain);

-- Browsers (hash of a cookie) and networks from which a user has signed in with the right password. Failures from there are
-- counted separately, so that attempts from elsewhere do not lock the user out.
CREATE TABLE auth.known_origins (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  origin bytea NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, user_id, origin)
);
CREATE INDEX known_origins_used ON auth.known_origins (last_used_at);

-- Failed sign-ins by username and by network address. Unknown usernames are counted like existing ones.
CREATE TABLE auth.attempts (
  key text PRIMARY KEY,
  failures integer NOT NULL,
  blocked_until timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);

-- Links to set a password, as hashes.
CREATE TABLE auth.password_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The administrator who handed the link over: it is valid while they may let its user in (docs/reference/mail.md). NULL:
  -- sent by mail or made by an operator.
  made_by uuid,
  -- Set when the link has been used: an HMAC over the password, with a key that only the form has. It recognizes the same
  -- form when it is sent again because the response was lost.
  used_with bytea,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE UNIQUE INDEX password_links_token ON auth.password_links (token_hash);
CREATE INDEX password_links_user ON auth.password_links (tenant_id, user_id);

-- Single-use links about a changed address of a user, as hashes: the link to the new address confirms it, the one to the
-- earlier address undoes the change.
CREATE TABLE auth.address_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  -- The new address.
  address text NOT NULL,
  -- Restored by the link; NULL: the link confirms.
  earlier_address text,
  -- When the server took a mail with an undo link of this change, or rejected it for good: from then on the change can be confirmed.
  sent_at timestamptz,
  -- When the change that the link undoes took effect.
  applied_at timestamptz,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE UNIQUE INDEX address_links_token ON auth.address_links (token_hash);
CREATE INDEX address_links_user ON auth.address_links (tenant_id, user_id);

-- Links by which programs read the calendar of a user without a sign-in, as hashes: one for each user.
CREATE TABLE auth.calendar_links (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);
CREATE UNIQUE INDEX calendar_links_token ON auth.calendar_links (token_hash);

-- Requests of users who forgot their password, until a process handles them: the request itself looks nothing up, so its
-- response time does not reveal whether a username exists. Sealed like keys.
CREATE TABLE auth.reset_requests (
  id uuid PRIMARY KEY,
  plain jsonb,
  sealed bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((plain IS NULL) <> (sealed IS NULL))
);
CREATE INDEX reset_requests_due ON auth.reset_requests (due_at);

-- Passkeys are found by their credential id before the tenant is known, so the ids are unique over all tenants.
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

-- The secret of an authenticator app, sealed with the key of purpose `factors`. Each time step is accepted once.
CREATE TABLE auth.authenticators (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  sealed_secret bytea NOT NULL,
  last_step bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);

-- Recovery codes, as hashes. A used one is deleted.
CREATE TABLE auth.recovery_codes (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id, code_hash),
  FOREIGN KEY (tenant_id, user_id) REFERENCES auth.credentials ON DELETE CASCADE
);

-- Users by their identity at an OpenID provider: its issuer and its subject, which never changes, within one tenant. A user
-- has one identity at a provider.
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

-- The platform's client secret at a provider, sealed by the deployment. Bound to issuer and client id: a configuration that
-- names another issuer does not send it there.
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

-- One authorization of one client by one user, with the payload of oidc-provider.
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
CREATE INDEX grants_user ON auth.grants (tenant_id, user_id, created_at, id);
CREATE INDEX grants_expires ON auth.grants (expires_at);

-- Secrets of clients, as hashes.
CREATE TABLE auth.client_secrets (
  tenant_id uuid NOT NULL,
  api_name text NOT NULL,
  secret_hash bytea NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, api_name)
);

-- Browser origins of each tenant's clients, and addresses of the Client ID Metadata Documents that they name: a CORS preflight
-- and a request of such a client name no tenant and cost one indexed lookup. Derived from the configuration at
-- metadata_version, and rebuilt when missing.
CREATE TABLE auth.tenant_origins (
  tenant_id uuid PRIMARY KEY,
  metadata_version integer NOT NULL,
  origins text[] NOT NULL,
  documents text[] NOT NULL DEFAULT '{}'
);
CREATE INDEX tenant_origins_origins ON auth.tenant_origins USING gin (origins);
CREATE INDEX tenant_origins_documents ON auth.tenant_origins USING gin (documents);

-- Daily use (UTC) of deprecated operations by the clients of a tenant.
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

-- Mails to users: an outbox, filled in the transaction that causes the mail. Links are made when a mail is sent and are not
-- stored here. Ended mails stay for two days without address and details, to be counted.
CREATE TABLE auth.mails (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  user_id uuid NOT NULL,
  kind text NOT NULL,
  address text,
  address_hash bytea NOT NULL,
  details jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Next attempt; while a process sends the mail, when another process may take it over.
  due_at timestamptz NOT NULL DEFAULT now(),
  give_up_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  ended_at timestamptz,
  outcome text CHECK (outcome IN ('sent', 'refused', 'gaveUp', 'needless')),
  -- Of a mail about a request of an agent: each user gets one.
  approval_id uuid,
  -- Of a mail about notifications: it is sent once.
  notifications_id uuid,
  PRIMARY KEY (tenant_id, id),
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX mails_due ON auth.mails (due_at) WHERE ended_at IS NULL;
CREATE INDEX mails_events ON auth.mails (tenant_id, address_hash, created_at) WHERE ended_at IS NULL AND kind = 'calendarEvent';
CREATE INDEX mails_ended ON auth.mails (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX mails_address ON auth.mails (address_hash, created_at);
CREATE INDEX mails_tenant ON auth.mails (tenant_id, created_at);
CREATE UNIQUE INDEX mails_approval ON auth.mails (tenant_id, approval_id, user_id) WHERE approval_id IS NOT NULL;
CREATE UNIQUE INDEX mails_notifications ON auth.mails (tenant_id, notifications_id) WHERE notifications_id IS NOT NULL;

-- Entries for the audit trails of tenants, which data writes: inserted in the transaction that they record, and deleted once
-- the trail contains them (docs/reference/audit.md).
CREATE TABLE auth.audit_entries (
  tenant_id  uuid        NOT NULL,
  audit_id   uuid        NOT NULL,
  entry      jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, audit_id)
);
CREATE INDEX audit_entries_order ON auth.audit_entries (audit_id);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['credentials', 'domains', 'known_origins', 'password_links', 'address_links',
    'calendar_links', 'passkeys', 'authenticators', 'recovery_codes', 'identities', 'provider_secrets', 'grants',
    'client_secrets', 'tenant_origins', 'deprecated_uses', 'mails', 'audit_entries'] LOOP
    EXECUTE format('ALTER TABLE auth.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE auth.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format(
      'CREATE POLICY tenant ON auth.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY directory ON auth.%I TO CURRENT_USER USING (true) WITH CHECK (true)', t);
  END LOOP;
END $$;

-- Short-lived protocol artifacts (codes, refresh tokens, browser sessions, interactions), found only by an unguessable id. Ids
-- that are secrets themselves are stored as SHA-256.
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
  -- Of a caller who is not signed in, whose artifacts are limited in number by network. NULL: made for a user, or by a client.
  network text,
  -- Last token request of a device, and the minimum interval in seconds between two of them (RFC 8628).
  polled_at timestamptz,
  poll_seconds integer,
  PRIMARY KEY (model, id)
);
CREATE INDEX artifacts_grant ON auth.artifacts (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX artifacts_account ON auth.artifacts (account_id) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX artifacts_user_code ON auth.artifacts (user_code) WHERE user_code IS NOT NULL;
CREATE INDEX artifacts_uid ON auth.artifacts (uid) WHERE uid IS NOT NULL;
CREATE INDEX artifacts_expires ON auth.artifacts (expires_at);
CREATE INDEX artifacts_network ON auth.artifacts (network, model, expires_at) WHERE network IS NOT NULL;

-- Keys for signatures, cookies and second factors: sealed when the deployment has a secret, otherwise in plain text.
CREATE TABLE auth.keys (
  kid text PRIMARY KEY,
  purpose text NOT NULL CHECK (purpose IN ('signing', 'cookies', 'factors')),
  plain jsonb,
  sealed bytea,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  retired_at timestamptz,
  CHECK ((plain IS NULL) <> (sealed IS NULL))
);

-- Secrets shared by all processes of the service across restarts: the key that seals cursors, unless the deployment sets
-- its own.
CREATE TABLE auth.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The following functions are for data, in transactions bound to the tenant: operations on connections and users are one
-- transaction with their idempotency key and audit entry, which are in the tenant's schema.

-- Ends a grant of a user, with the tokens that depend on it, and returns its client; null when the user has no such grant.
CREATE FUNCTION auth.end_grant(tenant uuid, holder uuid, ended text) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    client text;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN NULL; END IF;
    DELETE FROM auth.grants g
      WHERE g.tenant_id = tenant AND g.user_id = holder AND g.id = ended AND g.expires_at > now()
        AND g.client_id <> 'erp-account'
      RETURNING g.client_id INTO client;
    IF client IS NOT NULL THEN DELETE FROM auth.artifacts WHERE grant_id = ended; END IF;
    RETURN client;
  END $$;

-- Those of the grants that are live, and belong to users who may sign in, with the mark by which auth recognizes their client.
-- While auth is unavailable, gateways use it to check the grants that they know.
CREATE FUNCTION auth.living_grants(tenant uuid, asked text[])
  RETURNS TABLE (id text, user_id uuid, client_id text, authentication text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT g.id, g.user_id, g.client_id, g.payload #>> '{clientMarks,authentication}'
    FROM auth.grants g JOIN auth.credentials c ON c.tenant_id = g.tenant_id AND c.user_id = g.user_id
    WHERE g.tenant_id = tenant AND g.id = ANY (asked) AND g.expires_at > now() AND c.active
      AND tenant = nullif(current_setting('app.tenant_id', true), '')::uuid
  $$;

-- Queues a mail unless a limit is reached. All limits are here (docs/reference/mail.md). By kind: a user gets 3 an hour and 10
-- a day at an address, a tenant sends 20 a day to it. Of mails that may be the first to an address, a tenant sends 10 a day to
-- it, and all tenants 20, of which the first two of each tenant are always allowed. A tenant sends 2,000 a day, of which 1,000
-- are links for forgotten passwords. Mails about requests of agents, notifications and events have limits of their own.
CREATE FUNCTION auth.queue_mail(
    tenant uuid, holder uuid, mail_kind text, mail_address text, mail_details jsonb, try_seconds integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    first_contact CONSTANT text[] := ARRAY['invitation', 'addressConfirmation'];
    about_approval CONSTANT boolean := mail_kind = 'approvalRequested';
    about_notifications CONSTANT boolean := mail_kind = 'notification';
    about_event CONSTANT boolean := mail_kind = 'calendarEvent';
    -- Twice as many, so that people who were invited hear that an event does not take place.
    cancels CONSTANT integer := CASE WHEN mail_details #>> '{calendar,method}' = 'CANCEL' THEN 2 ELSE 1 END;
    hashed bytea := sha256(convert_to(lower(mail_address), 'UTF8'));
    approval uuid := (mail_details ->> 'approvalId')::uuid;
    notifications uuid := (mail_details ->> 'notificationsId')::uuid;
    of_hour integer;
    of_day integer;
    of_kind integer;
    contacts integer;
    contacts_here integer;
    of_tenant integer;
    resets integer;
    approvals integer;
    notices integer;
    events integer;
    events_of_user integer;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN 'unknown'; END IF;
    -- Serializes the mails that are counted together, so that concurrent ones do not exceed the limits. Those about events of a tenant
    -- have one lock: they go to many addresses in a transaction. Only limits over all tenants make tenants wait for each other.
    PERFORM pg_advisory_xact_lock(hashtextextended(CASE
      WHEN about_event THEN 'mails about events ' || tenant
      WHEN mail_kind = ANY (first_contact) THEN encode(hashed, 'hex')
      ELSE tenant || ' ' || encode(hashed, 'hex') END, 0));
    IF EXISTS (SELECT FROM auth.mails m WHERE m.tenant_id = tenant AND m.approval_id = approval AND m.user_id = holder)
      OR EXISTS (SELECT FROM auth.mails m WHERE m.tenant_id = tenant AND m.notifications_id = notifications)
    THEN RETURN 'queued'; END IF;
    SELECT count(*) FILTER (WHERE m.tenant_id = tenant AND m.user_id = holder AND m.kind = mail_kind
             AND m.created_at > now() - interval '1 hour'),
           count(*) FILTER (WHERE m.tenant_id = tenant AND m.user_id = holder AND m.kind = mail_kind),
           count(*) FILTER (WHERE m.tenant_id = tenant AND m.kind = mail_kind),
           count(*) FILTER (WHERE m.kind = ANY (first_contact)),
           count(*) FILTER (WHERE m.kind = ANY (first_contact) AND m.tenant_id = tenant)
      INTO of_hour, of_day, of_kind, contacts, contacts_here
      FROM auth.mails m WHERE m.address_hash = hashed AND m.created_at > now() - interval '1 day';
    SELECT count(*), count(*) FILTER (WHERE m.kind = 'passwordReset'),
           count(*) FILTER (WHERE m.kind = 'approvalRequested'), count(*) FILTER (WHERE m.kind = 'notification'),
           count(*) FILTER (WHERE m.kind = 'calendarEvent'),
           count(*) FILTER (WHERE m.kind = 'calendarEvent' AND m.user_id = holder)
      INTO of_tenant, resets, approvals, notices, events, events_of_user
      FROM auth.mails m WHERE m.tenant_id = tenant AND m.created_at > now() - interval '1 day';
    IF (about_approval AND (of_hour >= 20 OR of_day >= 60 OR of_kind >= 120 OR approvals >= 1000))
       OR (about_notifications AND (of_hour >= 12 OR of_day >= 100 OR of_kind >= 200 OR notices >= 10000))
       OR (about_event AND (of_hour >= 20 OR of_day >= 60 OR of_kind >= 120
         OR events_of_user >= 200 * cancels OR events >= 500 * cancels))
       OR (NOT about_approval AND NOT about_notifications AND NOT about_event AND (of_hour >= 3 OR of_day >= 10 OR of_kind >= 20))
       OR (mail_kind = ANY (first_contact) AND (contacts_here >= 10 OR (contacts >= 20 AND contacts_here >= 2)))
       OR (NOT about_notifications AND NOT about_event AND of_tenant - approvals - notices - events >= 2000) OR (mail_kind = 'passwordReset' AND resets >= 1000)
    THEN RETURN 'tooManyMails'; END IF;
    INSERT INTO auth.mails (tenant_id, user_id, kind, address, address_hash, details, approval_id, notifications_id, created_at, give_up_at)
      -- Under the lock, by which those about events are sent in this order.
      VALUES (tenant, holder, mail_kind, mail_address, hashed, mail_details, approval, notifications, clock_timestamp(),
        now() + make_interval(secs => try_seconds));
    RETURN 'queued';
  END $$;

-- Queues another invitation to a user without a password.
CREATE FUNCTION auth.queue_invitation(tenant uuid, holder uuid) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    invited record;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN 'unknown'; END IF;
    SELECT c.email, c.active, c.password_hash IS NOT NULL AS has_password INTO invited
      FROM auth.credentials c WHERE c.tenant_id = tenant AND c.user_id = holder FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT invited.active THEN RETURN 'inactive'; END IF;
    IF invited.has_password THEN RETURN 'hasPassword'; END IF;
    IF position('@' IN invited.email) = 0 THEN RETURN 'noAddress'; END IF;
    UPDATE auth.credentials c SET invited_at = now() WHERE c.tenant_id = tenant AND c.user_id = holder;
    RETURN auth.queue_mail(tenant, holder, 'invitation', invited.email, '{}', 172800);
  END $$;

-- Queues a mail about an event to a person outside, in the name of its organizer.
CREATE FUNCTION auth.queue_calendar_mail(tenant uuid, organizer uuid, mail_address text, event jsonb) RETURNS text
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT auth.queue_mail(tenant, organizer, 'calendarEvent', mail_address, jsonb_build_object('calendar', event), 172800)
  $$;

-- Stores a link that an administrator hands over. Its token is made by auth, and only the hash is stored.
CREATE FUNCTION auth.add_password_link(tenant uuid, holder uuid, maker uuid, hashed bytea, valid_seconds integer)
  RETURNS timestamptz
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    ends timestamptz := now() + make_interval(secs => valid_seconds);
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN NULL; END IF;
    PERFORM 1 FROM auth.credentials c WHERE c.tenant_id = tenant AND c.user_id = holder AND c.active FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- At most ten links of a user are valid.
    DELETE FROM auth.password_links l WHERE l.tenant_id = tenant AND l.user_id = holder AND l.token_hash IN (
      SELECT o.token_hash FROM auth.password_links o WHERE o.tenant_id = tenant AND o.user_id = holder
        ORDER BY o.expires_at DESC OFFSET 9);
    INSERT INTO auth.password_links (tenant_id, token_hash, user_id, made_by, expires_at)
      VALUES (tenant, hashed, holder, maker, ends);
    RETURN ends;
  END $$;

REVOKE EXECUTE ON FUNCTION auth.end_grant, auth.living_grants, auth.queue_mail, auth.queue_invitation, auth.queue_calendar_mail,
  auth.add_password_link FROM PUBLIC;
