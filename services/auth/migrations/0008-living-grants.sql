-- Which of these grants are live, of the tenant that the transaction is bound to. While auth is away, gateways go on with
-- the grants that it confirmed last, and data tells them which of those have ended since: it may ask just this.
CREATE FUNCTION auth.living_grants(tenant uuid, asked text[]) RETURNS TABLE (id text, user_id uuid, client_id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT g.id, g.user_id, g.client_id FROM auth.grants g
    WHERE g.tenant_id = tenant AND g.id = ANY (asked) AND g.expires_at > now()
      AND tenant = nullif(current_setting('app.tenant_id', true), '')::uuid
  $$;
REVOKE EXECUTE ON FUNCTION auth.living_grants FROM PUBLIC;
