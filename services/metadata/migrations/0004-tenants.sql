-- Work on tenants that needs the rights of the database owner, as functions limited to it: the login of the metadata
-- service can create neither roles nor schemas, and those of other services do not get these functions either.

-- Creates the roles of a tenant and grants them to the logins of the services that act on its schema, which are the rows of
-- platform.tenant_logins (mixins/database/logins.ts). Roles belong to the whole server, so a copy of this database may have
-- created them. They have LOGIN, because workers of a distributed database
-- connect as them, and no password.
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
      FROM platform.tenant_logins acting
      JOIN pg_roles entered ON entered.rolname = records OR (acting.as_owner AND entered.rolname = owner)
      JOIN pg_roles login ON login.rolname = acting.login
      WHERE NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.member = login.oid AND m.roleid = entered.oid)
    LOOP
      BEGIN
        EXECUTE format('GRANT %I TO %I', wanted.name, wanted.login);
      EXCEPTION WHEN unique_violation THEN NULL;
      END;
    END LOOP;
  END $$;

-- Creates the roles and the schema of a new tenant.
CREATE FUNCTION metadata.create_tenant_schema(tenant uuid) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    records text := 't_' || replace(tenant::text, '-', '');
  BEGIN
    PERFORM metadata.ensure_tenant_roles(tenant);
    EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', records, records || '_owner');
  END $$;

REVOKE EXECUTE ON FUNCTION metadata.ensure_tenant_roles, metadata.create_tenant_schema FROM PUBLIC;

-- Version of a tenant's schema, for processes of data that miss something in it.
CREATE FUNCTION metadata.tenant_schema_version(tenant uuid) RETURNS integer
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT tenant_schema_version FROM metadata.tenants WHERE id = tenant';
REVOKE EXECUTE ON FUNCTION metadata.tenant_schema_version FROM PUBLIC;

-- Whether a tenant is suspended, which data answers for gateways while auth is unavailable.
CREATE FUNCTION metadata.tenant_suspended(tenant uuid) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT coalesce((SELECT suspended FROM metadata.tenants WHERE id = tenant), true)';
REVOKE EXECUTE ON FUNCTION metadata.tenant_suspended FROM PUBLIC;

-- Tables that may hold data of tenants: all but the proofs of erasure and the tables in schemas of tenants.
CREATE FUNCTION metadata.shared_tables() RETURNS TABLE (name regclass, of_tenants boolean, refers boolean)
  LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
  AS $$
    SELECT c.oid::regclass,
      EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped),
      EXISTS (SELECT FROM pg_constraint r WHERE r.conrelid = c.oid AND r.contype = 'f')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^(pg_|t_[0-9a-f]{32}$)'
      AND NOT (n.nspname = 'metadata' AND c.relname = 'deletions')
  $$;

-- Deletes up to `batch` rows of a tenant in erasure from the tables of all services and returns their number by table; an
-- empty object when none are left. Tables with foreign keys come first.
CREATE FUNCTION metadata.erase_rows(tenant uuid, batch integer) RETURNS jsonb
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    gone jsonb := '{}';
    entry record;
    tenant_key text;
    rows bigint;
    left_over bigint := batch;
  BEGIN
    SELECT key INTO tenant_key FROM metadata.tenants WHERE id = tenant AND erasing_since IS NOT NULL FOR UPDATE;
    IF tenant_key IS NULL THEN RAISE EXCEPTION 'The tenant % is not being erased.', tenant; END IF;
    PERFORM set_config('app.tenant_id', tenant::text, true);
    -- Tables without tenant_id, each with the condition that finds the rows of a tenant.
    FOR entry IN SELECT * FROM (VALUES
      ('auth.artifacts', 'account_id IN (SELECT user_id::text FROM auth.credentials WHERE tenant_id = $1)
         OR grant_id IN (SELECT id FROM auth.grants WHERE tenant_id = $1)
         OR starts_with(payload ->> ''clientId'', $2 || ''-'') OR strpos(payload::text, $1::text) > 0'),
      ('auth.attempts', 'strpos(key, $1::text) > 0
         OR substring(key FROM ''[^ ]+$'') IN (SELECT user_id::text FROM auth.credentials WHERE tenant_id = $1)'),
      -- Its partition: rows of different ones may have the same ctid.
      ('pgboss.job_common', 'data ->> ''tenantId'' = $1::text'),
      ('seed.steps', 'tenant = $2')) special(name, condition)
    LOOP
      CONTINUE WHEN to_regclass(entry.name) IS NULL;
      EXECUTE format('DELETE FROM %1$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s WHERE %2$s LIMIT $3))',
        entry.name, entry.condition) USING tenant, tenant_key, left_over;
      GET DIAGNOSTICS rows = ROW_COUNT;
      IF rows > 0 THEN gone := gone || jsonb_build_object(entry.name, rows); END IF;
      left_over := left_over - rows;
      IF left_over <= 0 THEN RETURN gone; END IF;
    END LOOP;
    FOR entry IN SELECT * FROM metadata.shared_tables() WHERE of_tenants ORDER BY refers DESC, name::text LOOP
      EXECUTE format('DELETE FROM %1$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s WHERE tenant_id = $1 LIMIT $2))',
        entry.name) USING tenant, left_over;
      GET DIAGNOSTICS rows = ROW_COUNT;
      IF rows > 0 THEN gone := gone || jsonb_build_object(entry.name::text, rows); END IF;
      left_over := left_over - rows;
      IF left_over <= 0 THEN RETURN gone; END IF;
    END LOOP;
    RETURN gone;
  END $$;

-- Completes the erasure of a tenant: drops its empty schema and its roles and deletes its row in the registry. Returns false
-- when the roles stay, because another database of the server uses roles of these names.
CREATE FUNCTION metadata.erase_tenant(tenant uuid) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    records text := 't_' || replace(tenant::text, '-', '');
    role text;
    dropped boolean := true;
  BEGIN
    PERFORM FROM metadata.tenants WHERE id = tenant AND erasing_since IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'The tenant % is not being erased.', tenant; END IF;
    EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', records);
    FOREACH role IN ARRAY ARRAY[records, records || '_owner'] LOOP
      CONTINUE WHEN to_regrole(role) IS NULL;
      EXECUTE format('DROP OWNED BY %I', role);
      BEGIN
        EXECUTE format('DROP ROLE %I', role);
      EXCEPTION WHEN dependent_objects_still_exist THEN dropped := false;
      END;
    END LOOP;
    DELETE FROM metadata.tenants WHERE id = tenant;
    RETURN dropped;
  END $$;

-- Searches every row of every shared table for the id of a tenant, and looks for its schema. Returns the number of tables
-- searched, and the rows found by table.
CREATE FUNCTION metadata.find_traces(tenant uuid, OUT tables integer, OUT traces jsonb)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    one record;
    rows bigint;
    records text := 't_' || replace(tenant::text, '-', '');
  BEGIN
    tables := 0;
    traces := '{}';
    PERFORM set_config('app.tenant_id', tenant::text, true);
    FOR one IN SELECT * FROM metadata.shared_tables() ORDER BY name::text LOOP
      EXECUTE CASE WHEN one.of_tenants
        THEN format('SELECT count(*) FROM %s WHERE tenant_id = $1', one.name)
        ELSE format('SELECT count(*) FROM %s one WHERE strpos(one::text, $1::text) > 0', one.name) END
        INTO rows USING tenant;
      tables := tables + 1;
      IF rows > 0 THEN traces := traces || jsonb_build_object(one.name::text, rows); END IF;
    END LOOP;
    IF to_regnamespace(records) IS NOT NULL THEN traces := traces || jsonb_build_object('schema ' || records, 1); END IF;
  END $$;

REVOKE EXECUTE ON FUNCTION metadata.shared_tables, metadata.erase_rows, metadata.erase_tenant, metadata.find_traces
  FROM PUBLIC;
