-- The life of a tenant, as operators see to it (docs/reference/tenants.md).
ALTER TABLE metadata.tenants
  -- What it was created with: repeating that finishes it, anything else is refused.
  ADD COLUMN created_as       jsonb   NOT NULL DEFAULT '{}',
  -- Its template is still to be deployed.
  ADD COLUMN template_pending boolean NOT NULL DEFAULT false,
  -- By an operator; a tenant that is going to be deleted is suspended as well, with or without these two.
  ADD COLUMN suspended_at     timestamptz(3),
  ADD COLUMN suspended_reason text,
  -- From then on it is erased, and from the beginning of that there is no way back.
  ADD COLUMN delete_at        timestamptz(3),
  ADD COLUMN erasing_since    timestamptz(3);
UPDATE metadata.tenants SET created_as = jsonb_build_object('name', name),
  suspended_at = CASE WHEN suspended THEN now() END;

-- Asked by data for gateways that cannot ask auth.
CREATE FUNCTION metadata.tenant_suspended(tenant uuid) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT coalesce((SELECT suspended FROM metadata.tenants WHERE id = tenant), true)';
REVOKE EXECUTE ON FUNCTION metadata.tenant_suspended FROM PUBLIC;

-- What is left of a tenant: the proof that it was erased. It belongs to the operator, not to the tenant.
CREATE TABLE metadata.deletions (
  deletion_id  uuid           PRIMARY KEY,
  -- No tenant of the platform has it any more.
  deleted      uuid           NOT NULL UNIQUE,
  key          text           NOT NULL,
  name         text           NOT NULL,
  -- When the erasure was due, when it began, and when nothing was left.
  due_at       timestamptz(3) NOT NULL,
  begun_at     timestamptz(3) NOT NULL DEFAULT now(),
  finished_at  timestamptz(3),
  -- Rows by table, as `schema.table`; those of the tenant's own schema as `tenant.table`.
  removed      jsonb          NOT NULL DEFAULT '{}',
  -- The roles of the tenant; false: another database of the server has roles of these names in use.
  roles_removed boolean,
  -- In how many tables the id was looked for at the end, and how many rows of which still held it.
  tables_checked integer,
  remaining    jsonb
);
CREATE INDEX deletions_key ON metadata.deletions (key, begun_at);

-- Tables that may hold something of a tenant: all but those of the schemas that belong to a tenant, and the proofs.
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

-- Removes up to so many rows of a tenant that is being erased from the tables of all services, and answers how many by
-- table; an empty object when there are none. What refers to others goes first.
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
    -- Tables without a tenant's id, by what leads from them to it.
    FOR entry IN SELECT * FROM (VALUES
      ('auth.artifacts', 'account_id IN (SELECT user_id::text FROM auth.credentials WHERE tenant_id = $1)
         OR grant_id IN (SELECT id FROM auth.grants WHERE tenant_id = $1)
         OR starts_with(payload ->> ''clientId'', $2 || ''-'') OR strpos(payload::text, $1::text) > 0'),
      ('auth.attempts', 'strpos(key, $1::text) > 0
         OR substring(key FROM ''[^ ]+$'') IN (SELECT user_id::text FROM auth.credentials WHERE tenant_id = $1)'),
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

-- The end of a tenant that is being erased, whose schema is empty: its schema, its roles and its entry in the registry.
-- False when the roles stay, because another database of the server uses roles of these names.
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

-- Looks for the id of a tenant in every row of every shared table, and for its schema and roles: how many tables were
-- looked through, and what was found, by table.
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
