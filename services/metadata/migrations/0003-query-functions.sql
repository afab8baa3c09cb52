-- The opaque part of a record's ETag: its version in base 36, as JavaScript's toString(36) writes it. Six digits hold
-- every integer; one expression, so that the planner can put it in place of the call.
CREATE OR REPLACE FUNCTION erp.base36(value integer) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$
    SELECT CASE WHEN value = 0 THEN '0' ELSE ltrim(
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 60466176 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 1679616 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 46656 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 1296 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value / 36 % 36 + 1, 1) ||
      substr('0123456789abcdefghijklmnopqrstuvwxyz', value % 36 + 1, 1), '0') END
  $$;

-- Case folding and word characters by Unicode, not by the locale of the server, which may be C.
CREATE OR REPLACE FUNCTION erp.normalize(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT lower(public.unaccent('public.unaccent', value) COLLATE "und-x-icu") $$;

CREATE OR REPLACE FUNCTION erp.search_text(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ' ' || regexp_replace(lower(public.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
    '[^[:alnum:]]+', ' ', 'g') $$;

-- What a caller typed, normalized, as a part of a LIKE pattern that matches exactly these characters.
CREATE OR REPLACE FUNCTION erp.like_text(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT regexp_replace(erp.normalize(value), '([\\%_])', '\\\1', 'g') $$;

-- What a caller searches for, as a LIKE pattern over erp.search_text: a word that begins with it.
CREATE OR REPLACE FUNCTION erp.search_pattern(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT '% ' || btrim(erp.search_text(value)) || '%' $$;
