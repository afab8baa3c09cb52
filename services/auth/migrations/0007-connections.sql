-- Secrets that every process of the service shares and no restart may change: the key that cursors are sealed with, where
-- the deployment has no secret of its own.
CREATE TABLE auth.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- People list their grants page by page, newest first.
DROP INDEX auth.grants_user;
CREATE INDEX grants_user ON auth.grants (tenant_id, user_id, created_at, id);

-- Ends one grant of a user, with the tokens that depend on it, and answers its client; null when the user has no such
-- grant. A revocation through the API is one transaction with its idempotency key and its audit entry, which are in the
-- tenant's schema: data makes it, and may do just this to a grant, of the tenant that its transaction is bound to.
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
REVOKE EXECUTE ON FUNCTION auth.end_grant FROM PUBLIC;
