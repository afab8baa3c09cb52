-- Mails about requests of agents: one for each user and request, however often it is put in, and more of them than of
-- mails about an account: 20 an hour, 60 a day (docs/reference/mail.md).
ALTER TABLE auth.mails ADD COLUMN approval_id uuid;
CREATE UNIQUE INDEX mails_approval ON auth.mails (tenant_id, approval_id, user_id) WHERE approval_id IS NOT NULL;

CREATE OR REPLACE FUNCTION auth.queue_mail(
    tenant uuid, holder uuid, mail_kind text, mail_address text, mail_details jsonb, try_seconds integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    first_contact CONSTANT text[] := ARRAY['invitation', 'addressConfirmation'];
    about_approval CONSTANT boolean := mail_kind = 'approvalRequested';
    hashed bytea := sha256(convert_to(lower(mail_address), 'UTF8'));
    approval uuid := (mail_details ->> 'approvalId')::uuid;
    of_hour integer;
    of_day integer;
    of_kind integer;
    contacts integer;
    contacts_here integer;
    of_tenant integer;
    resets integer;
    approvals integer;
  BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN RETURN 'unknown'; END IF;
    -- One at a time for an address, so that none passes a count that another one is about to change.
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(hashed, 'hex'), 0));
    IF EXISTS (SELECT FROM auth.mails m WHERE m.tenant_id = tenant AND m.approval_id = approval AND m.user_id = holder)
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
           count(*) FILTER (WHERE m.kind = 'approvalRequested') INTO of_tenant, resets, approvals
      FROM auth.mails m WHERE m.tenant_id = tenant AND m.created_at > now() - interval '1 day';
    IF (about_approval AND (of_hour >= 20 OR of_day >= 60 OR of_kind >= 120 OR approvals >= 1000))
       OR (NOT about_approval AND (of_hour >= 3 OR of_day >= 10 OR of_kind >= 20))
       OR (mail_kind = ANY (first_contact) AND (contacts_here >= 10 OR (contacts >= 20 AND contacts_here >= 2)))
       OR of_tenant - approvals >= 2000 OR (mail_kind = 'passwordReset' AND resets >= 1000)
    THEN RETURN 'tooManyMails'; END IF;
    INSERT INTO auth.mails (tenant_id, user_id, kind, address, address_hash, details, approval_id, give_up_at)
      VALUES (tenant, holder, mail_kind, mail_address, hashed, mail_details, approval,
        now() + make_interval(secs => try_seconds));
    RETURN 'queued';
  END $$;
