-- Forms in which duplicate rules compare texts (docs/reference/duplicates.md). Indexes stand on them, so a form never
-- changes once released; a better one gets a new name. NULL stands for blank, which matches nothing. Their cost is told
-- to the planner for the same reason as that of erp.search_text.
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- Characters of a form that count: what an index entry can hold.
CREATE FUNCTION erp.match_text(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(lower(erp.unaccent('public.unaccent', value) COLLATE "und-x-icu"),
      '[^[:alnum:]]+', '', 'g'), 400), '');
  END $$;

-- Telephone numbers: digits alone. `+` and a leading 00 say the same, `(0)` is not dialled from abroad; an extension
-- stays apart. Whether 030 is Berlin is not guessed.
CREATE FUNCTION erp.match_phone(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(regexp_replace(regexp_replace(lower(value), '\(0\)', ''), '[^0-9x]+', '', 'g'),
      '^00', ''), 400), '');
  END $$;

-- E-mail addresses: without regard to case; every other character makes another mailbox.
CREATE FUNCTION erp.match_email(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 100
  AS $$ BEGIN
    RETURN nullif(left(lower(btrim(value) COLLATE "und-x-icu"), 400), '');
  END $$;

-- Web addresses: without scheme, `www.`, case and closing slashes.
CREATE FUNCTION erp.match_url(value text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN nullif(left(regexp_replace(regexp_replace(lower(btrim(value) COLLATE "und-x-icu"),
      '^[a-z][a-z0-9+.-]*:/*(www\.)?', ''), '/+$', ''), 400), '');
  END $$;

-- The form whose trigrams are compared: words of the normalized text. pg_trgm knows the letters of the server's locale
-- alone, which may be C: other letters are written as their code points.
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

-- Number of different trigrams of a text. Texts that are similar to a short one are short: by that alone they are found
-- among many when all their trigrams are common ones.
CREATE FUNCTION erp.fuzzy_size(value text) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ BEGIN
    RETURN cardinality(public.show_trgm(erp.fuzzy_text(value)));
  END $$;
