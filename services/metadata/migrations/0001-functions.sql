-- Functions that every tenant's tables use. They live in one place, so that an index on them means the same everywhere.
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA IF NOT EXISTS erp;
GRANT USAGE ON SCHEMA erp TO PUBLIC;

-- The opaque part of a record's ETag: its version in base 36, as JavaScript's toString(36) writes it. Six digits hold
-- every integer, most records need one. One expression and not declared strict, so that the planner can put it in place
-- of the call, which costs three times as much.
CREATE FUNCTION erp.base36(value integer) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$
    SELECT CASE WHEN value < 36 THEN substr('0123456789abcdefghijklmnopqrstuvwxyz', value + 1, 1) ELSE ltrim(
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 60466176 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 1679616 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 46656 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 1296 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 36 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value % 36 + 1, 1), '0') END
  $$;

-- Removal of accents, declared immutable: public.unaccent is only stable, because its dictionary could be changed, and
-- so keeps every function around it from being put in line (a filter over 200,000 names: 526 ms, in line 124 ms). Without
-- the right to create a C function it is a wrapper, which costs time and changes nothing else.
DO $do$ BEGIN
  CREATE FUNCTION erp.unaccent(regdictionary, text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS '$libdir/unaccent', 'unaccent_dict';
EXCEPTION WHEN insufficient_privilege THEN
  CREATE FUNCTION erp.unaccent(regdictionary, text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT public.unaccent($1, $2)';
END $do$;

-- Case- and accent-insensitive form of a text. Case folding and word characters by Unicode, not by the locale of the
-- server, which may be C.
CREATE FUNCTION erp.normalize(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu") $$;

-- The form that search looks at: words of the normalized text, each behind one space. Not put in line, and with its
-- true cost: else the planner rather computes it for every row in the order of the list than asks the trigram index.
CREATE FUNCTION erp.search_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN ' ' || regexp_replace(lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
      '[^[:alnum:]]+', ' ', 'g');
  END $$;

-- What a caller typed, normalized, as a part of a LIKE pattern that matches exactly these characters.
CREATE FUNCTION erp.like_text(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT regexp_replace(erp.normalize(value), '([\\%_])', '\\\1', 'g') $$;

-- What a caller searches for, as a LIKE pattern over erp.search_text: a word that begins with it.
CREATE FUNCTION erp.search_pattern(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT '% ' || btrim(erp.search_text(value)) || '%' $$;
