-- The logins of analytics and agent take the roles of tenants, too: their mutations claim keys and write audit entries and
-- events like those of every service.
CREATE OR REPLACE FUNCTION metadata.ensure_tenant_roles(tenant uuid) RETURNS void
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    records text := 't_' || replace(tenant::text, '-', '');
    owner text := records || '_owner';
    wanted record;
  BEGIN
    FOR wanted IN SELECT unnest(ARRAY[records, owner]) AS name LOOP
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.name) THEN
          EXECUTE format('CREATE ROLE %I LOGIN NOINHERIT', wanted.name);
          EXECUTE format('GRANT %I TO CURRENT_USER', wanted.name);
        END IF;
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
      END;
    END LOOP;
    FOR wanted IN
      SELECT entered.rolname AS name, login.rolname AS login
      FROM (VALUES (records, 'login_data'), (records, 'login_metadata'), (records, 'login_analytics'),
        (records, 'login_agent'), (owner, 'login_metadata')) AS grants(role, login)
      JOIN pg_roles entered ON entered.rolname = grants.role
      JOIN pg_roles login ON login.rolname = grants.login
      WHERE NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.member = login.oid AND m.roleid = entered.oid)
    LOOP
      BEGIN
        EXECUTE format('GRANT %I TO %I', wanted.name, wanted.login);
      EXCEPTION WHEN unique_violation THEN NULL;
      END;
    END LOOP;
  END $$;
