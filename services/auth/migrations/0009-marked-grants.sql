-- What data is told of a grant while auth is away is what auth itself looks at: the mark by which it recognises its
-- client as well, and only of users who may sign in. The columns of before keep their names for data of that version.
DROP FUNCTION auth.living_grants(uuid, text[]);
CREATE FUNCTION auth.living_grants(tenant uuid, asked text[])
  RETURNS TABLE (id text, user_id uuid, client_id text, authentication text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT g.id, g.user_id, g.client_id, g.payload #>> '{clientMarks,authentication}'
    FROM auth.grants g JOIN auth.credentials c ON c.tenant_id = g.tenant_id AND c.user_id = g.user_id
    WHERE g.tenant_id = tenant AND g.id = ANY (asked) AND g.expires_at > now() AND c.active
      AND tenant = nullif(current_setting('app.tenant_id', true), '')::uuid
  $$;
REVOKE EXECUTE ON FUNCTION auth.living_grants FROM PUBLIC;
