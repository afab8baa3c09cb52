-- Whether a text is a value of a type, such as numeric(18,2): pg_input_is_valid, which PostgreSQL has from 16 on.
DO $do$ BEGIN
  IF to_regprocedure('pg_catalog.pg_input_is_valid(text, text)') IS NOT NULL THEN
    CREATE FUNCTION erp.input_is_valid(input text, type_name text) RETURNS boolean
      LANGUAGE sql STABLE STRICT PARALLEL SAFE
      AS 'SELECT pg_catalog.pg_input_is_valid(input, type_name)';
  ELSE
    -- The names of types are those of our own columns.
    CREATE FUNCTION erp.input_is_valid(input text, type_name text) RETURNS boolean
      LANGUAGE plpgsql STABLE STRICT
      AS $$ BEGIN
        EXECUTE 'SELECT CAST($1 AS ' || type_name || ')' USING input;
        RETURN true;
      EXCEPTION WHEN data_exception THEN
        RETURN false;
      END $$;
  END IF;
END $do$;
