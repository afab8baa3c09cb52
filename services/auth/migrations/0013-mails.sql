-- Mails to users: an outbox that is filled in the transaction of what a mail is about. Links are made when a mail is
-- sent, so none stands here. What has ended stays for two days without address and details, to be counted.
CREATE TABLE auth.mails (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  user_id uuid NOT NULL,
  kind text NOT NULL,
  address text,
  address_hash bytea NOT NULL,
  details jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When it is tried next; while a process sends it, when another one may.
  due_at timestamptz NOT NULL DEFAULT now(),
  give_up_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  ended_at timestamptz,
  outcome text CHECK (outcome IN ('sent', 'refused', 'gaveUp', 'needless')),
  PRIMARY KEY (tenant_id, id),
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX mails_due ON auth.mails (due_at) WHERE ended_at IS NULL;
CREATE INDEX mails_ended ON auth.mails (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX mails_address ON auth.mails (address_hash, created_at);
CREATE INDEX mails_tenant ON auth.mails (tenant_id, created_at);

-- Single-use links to an address of a user, of which the hash is stored: with one the user confirms a new address, with
-- the other one objects to it from the old one.
CREATE TABLE auth.address_links (
  tenant_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  user_id uuid NOT NULL,
  purpose text NOT NULL CHECK (purpose IN ('confirm', 'object')),
  address text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE UNIQUE INDEX address_links_token ON auth.address_links (token_hash);
CREATE INDEX address_links_user ON auth.address_links (tenant_id, user_id);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['mails', 'address_links'] LOOP
    EXECUTE format('ALTER TABLE auth.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE auth.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format(
      'CREATE POLICY tenant ON auth.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', t);
    EXECUTE format('CREATE POLICY directory ON auth.%I TO CURRENT_USER USING (true) WITH CHECK (true)', t);
  END LOOP;
END $$;

-- What somebody typed who has forgotten a password, until a process has looked at it: the request itself asks nothing
-- about the name, so it takes as long for one that nobody has. Sealed like keys.
CREATE TABLE auth.reset_requests (
  id uuid PRIMARY KEY,
  plain jsonb,
  sealed bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((plain IS NULL) <> (sealed IS NULL))
);
CREATE INDEX reset_requests_due ON auth.reset_requests (due_at);

-- invited_at: when the invitation was sent on its way, or given up. pending_email: the address of the record, while the
-- user has not confirmed it; until then `email` is where links go. signed_in_at: the last complete sign-in.
-- Nobody who was there before is invited or told of the next sign-in for the first time.
ALTER TABLE auth.credentials ADD COLUMN invited_at timestamptz, ADD COLUMN pending_email text,
  ADD COLUMN signed_in_at timestamptz;
UPDATE auth.credentials SET invited_at = now(), signed_in_at = last_sign_in_at;

-- Puts a mail into the outbox, of the tenant that the transaction is bound to, unless there were too many. The limits
-- stand here and nowhere else (docs/reference/mail.md): of one kind, a user gets 3 an hour and 10 a day at an address;
-- what administrators cause reaches one address 20 times a day, from whatever tenants; a tenant sends 2,000 a day.
CREATE FUNCTION auth.queue_mail(
    tenant uuid, holder uuid, mail_kind text, mail_address text, mail_details jsonb, try_seconds integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    hashed bytea := sha256(convert_to(lower(mail_address), 'UTF8'));
    of_hour integer;
    of_day integer;
    caused integer;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN 'unknown'; END IF;
    -- One at a time for an address, so that none passes a count that another one is about to change.
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(hashed, 'hex'), 0));
    SELECT count(*) FILTER (WHERE m.tenant_id = tenant AND m.user_id = holder AND m.kind = mail_kind
             AND m.created_at > now() - interval '1 hour'),
           count(*) FILTER (WHERE m.tenant_id = tenant AND m.user_id = holder AND m.kind = mail_kind),
           count(*) FILTER (WHERE m.kind IN ('invitation', 'addressConfirmation', 'addressChanged'))
      INTO of_hour, of_day, caused
      FROM auth.mails m WHERE m.address_hash = hashed AND m.created_at > now() - interval '1 day';
    IF of_hour >= 3 OR of_day >= 10
       OR (mail_kind IN ('invitation', 'addressConfirmation', 'addressChanged') AND caused >= 20)
       OR (SELECT count(*) FROM auth.mails m
           WHERE m.tenant_id = tenant AND m.created_at > now() - interval '1 day') >= 2000
    THEN RETURN 'tooManyMails'; END IF;
    INSERT INTO auth.mails (tenant_id, user_id, kind, address, address_hash, details, give_up_at)
      VALUES (tenant, holder, mail_kind, mail_address, hashed, mail_details, now() + make_interval(secs => try_seconds));
    RETURN 'queued';
  END $$;
REVOKE EXECUTE ON FUNCTION auth.queue_mail FROM PUBLIC;

-- For data, whose transaction has the key and the audit entry of the operations on users: another invitation to one who
-- has not set a password, at the address where links go.
CREATE FUNCTION auth.queue_invitation(tenant uuid, holder uuid) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    found record;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN 'unknown'; END IF;
    SELECT c.email, c.active, c.password_hash IS NOT NULL AS has_password INTO found
      FROM auth.credentials c WHERE c.tenant_id = tenant AND c.user_id = holder FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT found.active THEN RETURN 'unknown'; END IF;
    IF found.has_password THEN RETURN 'hasPassword'; END IF;
    IF position('@' IN found.email) = 0 THEN RETURN 'noAddress'; END IF;
    UPDATE auth.credentials c SET invited_at = now() WHERE c.tenant_id = tenant AND c.user_id = holder;
    RETURN auth.queue_mail(tenant, holder, 'invitation', found.email, '{}', 172800);
  END $$;
REVOKE EXECUTE ON FUNCTION auth.queue_invitation FROM PUBLIC;

-- The same for a link that an administrator hands over; its token is made by auth, and its hash is all that is stored.
CREATE FUNCTION auth.add_password_link(tenant uuid, holder uuid, hashed bytea, valid_seconds integer)
  RETURNS timestamptz
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    ends timestamptz := now() + make_interval(secs => valid_seconds);
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN NULL; END IF;
    PERFORM 1 FROM auth.credentials c WHERE c.tenant_id = tenant AND c.user_id = holder AND c.active FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- Of those that were handed over before, a few stay good.
    DELETE FROM auth.password_links l WHERE l.tenant_id = tenant AND l.user_id = holder AND l.token_hash IN (
      SELECT o.token_hash FROM auth.password_links o WHERE o.tenant_id = tenant AND o.user_id = holder
        ORDER BY o.expires_at DESC OFFSET 9);
    INSERT INTO auth.password_links (tenant_id, token_hash, user_id, expires_at) VALUES (tenant, hashed, holder, ends);
    RETURN ends;
  END $$;
REVOKE EXECUTE ON FUNCTION auth.add_password_link FROM PUBLIC;
