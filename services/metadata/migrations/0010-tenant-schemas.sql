-- What only the owner of the database may do for a tenant, as functions that do just that: the login role of the metadata
-- service can neither create roles nor schemas, and those of the other services not even this.

-- The roles of a tenant, and the logins of services that may take them. Roles belong to the whole server: a copy of this
-- database on it may have made them. They may log in, because the workers of a distributed database are entered as these
-- roles, and have no password.
CREATE FUNCTION metadata.ensure_tenant_roles(tenant uuid) RETURNS void
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
      FROM (VALUES (records, 'login_data'), (records, 'login_metadata'), (owner, 'login_metadata')) AS grants(role, login)
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

-- Roles and schema of a new tenant.
CREATE FUNCTION metadata.create_tenant_schema(tenant uuid) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    records text := 't_' || replace(tenant::text, '-', '');
  BEGIN
    PERFORM metadata.ensure_tenant_roles(tenant);
    EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', records, records || '_owner');
  END $$;

-- Gives the schema of a tenant that an older version of the platform made to the tenant's owner role, with everything in
-- it; privileges stay. Takes the row first that every change of a tenant's configuration takes first.
CREATE FUNCTION metadata.adopt_tenant_schema(tenant uuid) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    records text := 't_' || replace(tenant::text, '-', '');
    owner text := records || '_owner';
    found record;
  BEGIN
    EXECUTE format('SELECT FROM %I._state FOR UPDATE', records);
    PERFORM metadata.ensure_tenant_roles(tenant);
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', records, owner);
    FOR found IN SELECT oid::regclass AS name FROM pg_class
      WHERE relnamespace = records::regnamespace AND relkind = 'r' AND relowner <> owner::regrole
    LOOP
      EXECUTE format('ALTER TABLE %s OWNER TO %I', found.name, owner);
    END LOOP;
    FOR found IN SELECT oid::regprocedure AS name FROM pg_proc
      WHERE pronamespace = records::regnamespace AND proowner <> owner::regrole
    LOOP
      EXECUTE format('ALTER FUNCTION %s OWNER TO %I', found.name, owner);
    END LOOP;
  END $$;

REVOKE EXECUTE ON FUNCTION metadata.ensure_tenant_roles, metadata.create_tenant_schema, metadata.adopt_tenant_schema
  FROM PUBLIC;
