-- In the first version a variable took the name of PL/pgSQL's own FOUND, so that no invitation could be sent again.
CREATE OR REPLACE FUNCTION auth.queue_invitation(tenant uuid, holder uuid) RETURNS text
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
