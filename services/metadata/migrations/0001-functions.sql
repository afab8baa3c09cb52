-- Functions used by the tables of all tenants and by indexes on them.
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE SCHEMA IF NOT EXISTS erp;
GRANT USAGE ON SCHEMA erp TO PUBLIC;

-- The opaque part of a record's ETag: its version in base 36, as JavaScript's toString(36) writes it. Six digits hold
-- every integer. A single expression and not strict, so that the planner inlines it: a call costs three times as much.
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

-- unaccent() declared immutable. public.unaccent is only stable, because its dictionary can be changed, which prevents the
-- inlining of every function around it (a filter over 200,000 names: 526 ms, inlined 124 ms). Without the right to create a
-- C function it is a wrapper, slower and otherwise the same.
DO $do$ BEGIN
  CREATE FUNCTION erp.unaccent(regdictionary, text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS '$libdir/unaccent', 'unaccent_dict';
EXCEPTION WHEN insufficient_privilege THEN
  CREATE FUNCTION erp.unaccent(regdictionary, text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT public.unaccent($1, $2)';
END $do$;

-- Case- and accent-insensitive form of a text, by the rules of Unicode: the locale of the server may be C.
CREATE FUNCTION erp.normalize(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu") $$;

-- The form that search matches: words of the normalized text, each after one space. Not inlined, and with its true cost:
-- otherwise the planner computes it for every row in the order of the list instead of using the trigram index.
CREATE FUNCTION erp.search_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN ' ' || regexp_replace(lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
      '[^[:alnum:]]+', ' ', 'g');
  END $$;

-- Input of a caller, normalized and escaped as a part of a LIKE pattern.
CREATE FUNCTION erp.like_text(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT regexp_replace(erp.normalize(value), '([\\%_])', '\\\1', 'g') $$;

-- A search term as a LIKE pattern over erp.search_text: matches words that begin with it.
CREATE FUNCTION erp.search_pattern(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT '% ' || btrim(erp.search_text(value)) || '%' $$;

-- Whether a text is valid input for a type, such as numeric(18,2): pg_input_is_valid, which PostgreSQL 15 lacks.
DO $do$ BEGIN
  IF to_regprocedure('pg_catalog.pg_input_is_valid(text, text)') IS NOT NULL THEN
    CREATE FUNCTION erp.input_is_valid(input text, type_name text) RETURNS boolean
      LANGUAGE sql STABLE STRICT PARALLEL SAFE
      AS 'SELECT pg_catalog.pg_input_is_valid(input, type_name)';
  ELSE
    -- type_name is always the type of one of our own columns.
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

-- Forms in which duplicate rules compare texts (docs/reference/duplicates.md). Indexes depend on them, so a released form
-- never changes; a better one gets a new name. NULL stands for blank, which matches nothing. They declare their cost for the
-- same reason as erp.search_text.
-- Letters and digits of the normalized text. Every form is cut at 400 characters, which fit into an index entry.
CREATE FUNCTION erp.match_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
      '[^[:alnum:]]+', '', 'g'), 400), '');
  END $$;

-- Telephone numbers: digits only. `+` equals a leading 00, `(0)` is not dialled from abroad, `x` keeps an extension apart.
-- National numbers are not completed.
CREATE FUNCTION erp.match_phone(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(regexp_replace(regexp_replace(lower(value), '\(0\)', ''), '[^0-9x]+', '', 'g'),
      '^00', ''), 400), '');
  END $$;

-- E-mail addresses: case-insensitive; every other difference is a different mailbox.
CREATE FUNCTION erp.match_email(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 100
  AS $$ BEGIN
    RETURN nullif(left(lower(btrim(value) COLLATE "und-x-icu"), 400), '');
  END $$;

-- Web addresses: without scheme, `www.`, case and trailing slashes.
CREATE FUNCTION erp.match_url(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(regexp_replace(lower(btrim(value) COLLATE "und-x-icu"),
      '^[a-z][a-z0-9+.-]*:/*(www\.)?', ''), '/+$', ''), 400), '');
  END $$;

-- The form whose trigrams are compared: words of the normalized text. pg_trgm recognizes only letters of the server's
-- locale, which may be C: other letters are replaced by their code points.
CREATE FUNCTION erp.fuzzy_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ DECLARE
    words text := btrim(left(regexp_replace(lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
      '[^[:alnum:]]+', ' ', 'g'), 400));
  BEGIN
    IF octet_length(words) > length(words) THEN
      SELECT string_agg(CASE WHEN ascii(c) < 128 THEN c ELSE to_hex(ascii(c)) END, '' ORDER BY n) INTO words
        FROM regexp_split_to_table(words, '') WITH ORDINALITY AS t(c, n);
    END IF;
    RETURN nullif(words, '');
  END $$;

-- Number of distinct trigrams of a text. Texts similar to a short one are short, which finds them even when all their
-- trigrams are common.
CREATE FUNCTION erp.fuzzy_size(value text) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN cardinality(public.show_trgm(erp.fuzzy_text(value)));
  END $$;

-- A trigram index also holds the size class of each text. Similar texts have similar sizes: a search skips texts that
-- contain all trigrams of a short one and many more without reading them.

-- Class of a size: one per size below 64; above, sizes within a thirty-second share one.
CREATE FUNCTION erp.size_class(size bigint) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ DECLARE
    halved integer := 0;
  BEGIN
    WHILE size > 63 LOOP
      size := size >> 1;
      halved := halved + 1;
    END LOOP;
    RETURN size + 32 * halved;
  END $$;

-- The class of a text, as an array of one: array operators find any of several classes in one pass.
CREATE FUNCTION erp.fuzzy_class(value text) RETURNS integer[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ DECLARE
    class integer := erp.size_class(cardinality(public.show_trgm(erp.fuzzy_text(value))));
  BEGIN
    RETURN CASE WHEN class IS NOT NULL THEN ARRAY[class] END;
  END $$;

-- The classes of all texts that can reach `similarity` s to this one: for n trigrams, sizes of s × n to n ÷ s. A form has at
-- most 2,000 characters, and hardly more trigrams.
CREATE FUNCTION erp.fuzzy_classes(value text, similarity float8) RETURNS integer[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ DECLARE
    size integer := cardinality(public.show_trgm(erp.fuzzy_text(value)));
  BEGIN
    RETURN ARRAY(SELECT generate_series(erp.size_class(ceil(size * similarity)::bigint),
      erp.size_class(least(floor(size / similarity), 4000)::bigint)));
  END $$;
