-- Functions that every tenant's tables use. They live in one place, so that an index on them means the same everywhere.
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA IF NOT EXISTS erp;
GRANT USAGE ON SCHEMA erp TO PUBLIC;

-- Case- and accent-insensitive form of a text. Immutable, because the dictionary is named.
CREATE OR REPLACE FUNCTION erp.normalize(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT lower(public.unaccent('public.unaccent', value)) $$;

-- The form that search looks at: words of the normalized text, each behind one space.
CREATE OR REPLACE FUNCTION erp.search_text(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ' ' || regexp_replace(lower(public.unaccent('public.unaccent', value)), '[^[:alnum:]]+', ' ', 'g') $$;
