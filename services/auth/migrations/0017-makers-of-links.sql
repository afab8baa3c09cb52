-- Who handed a link over: it counts while they still may let its user in (docs/reference/mail.md). NULL: it was sent by mail
-- or made by an operator. No release has called the function without the maker.
ALTER TABLE auth.password_links ADD COLUMN made_by uuid;
DROP FUNCTION auth.add_password_link(uuid, uuid, bytea, integer);
CREATE FUNCTION auth.add_password_link(tenant uuid, holder uuid, maker uuid, hashed bytea, valid_seconds integer)
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
    INSERT INTO auth.password_links (tenant_id, token_hash, user_id, made_by, expires_at)
      VALUES (tenant, hashed, holder, maker, ends);
    RETURN ends;
  END $$;
REVOKE EXECUTE ON FUNCTION auth.add_password_link FROM PUBLIC;
