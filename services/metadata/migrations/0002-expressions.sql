-- Functions called by compiled expressions (lib/expression/sql.ts). None of them raises an error. Where an evaluation in
-- Node fails, they return a value that no field can have, and the outermost level turns it into null: 'NaN' for a number,
-- 'infinity' for a date or moment, U+0958 for a text, which NFC never contains. Functions that compare accept nulls;
-- all others are strict.

-- A number within the range of a field: at most 200 digits.
CREATE FUNCTION erp.expr_number(value numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  DECLARE
    trimmed numeric := trim_scale(value);
    digits integer := scale(trimmed);
  BEGIN
    IF value = 'NaN' OR digits > 200 OR abs(trimmed) * ('1e' || digits)::numeric >= 1e200 THEN RETURN 'NaN'; END IF;
    RETURN trimmed;
  END $$;

-- Rounded to 20 fractional digits, half away from zero; div() is exact where `/` rounds on its own.
CREATE FUNCTION erp.expr_divide(dividend numeric, divisor numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF divisor = 0 OR divisor = 'NaN' OR dividend = 'NaN' THEN RETURN 'NaN'; END IF;
    RETURN erp.expr_number(sign(dividend) * sign(divisor) * 0.00000000000000000001 *
      div(abs(dividend) * 200000000000000000000 + abs(divisor), 2 * abs(divisor)));
  END $$;

CREATE FUNCTION erp.expr_remainder(dividend numeric, divisor numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF divisor = 0 OR divisor = 'NaN' OR dividend = 'NaN' THEN RETURN 'NaN'; END IF;
    RETURN erp.expr_number(dividend % divisor);
  END $$;

CREATE FUNCTION erp.expr_round(value numeric, digits numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF value = 'NaN' OR digits = 'NaN' OR digits <> trunc(digits) OR abs(digits) > 100 THEN RETURN 'NaN'; END IF;
    RETURN erp.expr_number(round(value, digits::integer));
  END $$;

CREATE FUNCTION erp.expr_min(a numeric, b numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN a = 'NaN' OR b = 'NaN' THEN 'NaN' ELSE least(a, b) END;
  END $$;

CREATE FUNCTION erp.expr_max(a numeric, b numeric) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN greatest(a, b);
  END $$;

-- A time zone, or UTC in place of one unknown to this server. For a constant it is evaluated at planning, so that no row
-- pays for the exception block.
CREATE FUNCTION erp.expr_zone(zone text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
  BEGIN
    PERFORM timestamptz '2000-01-01 00:00:00Z' AT TIME ZONE zone;
    RETURN zone;
  EXCEPTION WHEN invalid_parameter_value THEN
    RETURN 'UTC';
  END $$;

-- The day of a moment in a time zone, in the years 0001 to 9999.
CREATE FUNCTION erp.expr_day(moment timestamptz, zone text) RETURNS date
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  DECLARE
    clock timestamp;
  BEGIN
    IF NOT isfinite(moment) THEN RETURN 'infinity'; END IF;
    clock := moment AT TIME ZONE zone;
    IF clock < '0001-01-01' OR clock >= '10000-01-01' THEN RETURN 'infinity'; END IF;
    RETURN clock::date;
  END $$;

CREATE FUNCTION erp.expr_add_days(value date, days numeric) RETURNS date
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF NOT isfinite(value) OR days = 'NaN' OR days <> trunc(days) OR abs(days) > 4000000
      OR value - date '0001-01-01' + days NOT BETWEEN 0 AND 3652058 THEN RETURN 'infinity'; END IF;
    RETURN value + days::integer;
  END $$;

CREATE FUNCTION erp.expr_add_days(value timestamptz, days numeric) RETURNS timestamptz
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF NOT isfinite(value) OR days = 'NaN' OR days <> trunc(days) OR abs(days) > 4000000
      OR floor(extract(epoch FROM value) / 86400) + days NOT BETWEEN -719162 AND 2932896 THEN RETURN 'infinity'; END IF;
    RETURN value + make_interval(hours => 24 * days::integer);
  END $$;

CREATE FUNCTION erp.expr_add_months(value date, months numeric) RETURNS date
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  DECLARE
    in_all numeric;
  BEGIN
    IF NOT isfinite(value) OR months = 'NaN' OR months <> trunc(months) OR abs(months) > 120000 THEN
      RETURN 'infinity';
    END IF;
    in_all := extract(year FROM value) * 12 + extract(month FROM value) - 1 + months;
    IF in_all < 12 OR in_all >= 120000 THEN RETURN 'infinity'; END IF;
    RETURN (value + make_interval(months => months::integer))::date;
  END $$;

CREATE FUNCTION erp.expr_days_between(first date, last date) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF NOT isfinite(first) OR NOT isfinite(last) THEN RETURN 'NaN'; END IF;
    RETURN last - first;
  END $$;

-- `part`: year, month, day or isodow.
CREATE FUNCTION erp.expr_date_part(part text, value date) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF NOT isfinite(value) THEN RETURN 'NaN'; END IF;
    RETURN date_part(part, value);
  END $$;

CREATE FUNCTION erp.expr_has_failed(value text) RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT value = E'\u0958' $$;

-- Upper and lower case by Unicode 17 in no particular language, whatever earlier version the collation of the database has:
-- these letters have been given case since. A sigma at the end of a word stays σ. translate() reads the whole list for each
-- character that is not in it, so it runs only on texts with a letter of the list (1,000 accented letters: 0.02 ms instead
-- of 1.3 ms), and before a letter can become several.
DO $do$
DECLARE
  capital text;
  small text;
BEGIN
  SELECT string_agg(chr(c), '' ORDER BY c), string_agg(chr(c + distance), '' ORDER BY c) INTO capital, small
  FROM (VALUES
    (x'1c89'::integer, x'1c89'::integer, 1), (x'1c90'::integer, x'1cba'::integer, -3008),
    (x'1cbd'::integer, x'1cbf'::integer, -3008), (x'2c2f'::integer, x'2c2f'::integer, 48),
    (x'a7b8'::integer, x'a7b8'::integer, 1), (x'a7ba'::integer, x'a7ba'::integer, 1),
    (x'a7bc'::integer, x'a7bc'::integer, 1), (x'a7be'::integer, x'a7be'::integer, 1),
    (x'a7c0'::integer, x'a7c0'::integer, 1), (x'a7c2'::integer, x'a7c2'::integer, 1),
    (x'a7c4'::integer, x'a7c4'::integer, -48), (x'a7c5'::integer, x'a7c5'::integer, -42307),
    (x'a7c6'::integer, x'a7c6'::integer, -35384), (x'a7c7'::integer, x'a7c7'::integer, 1),
    (x'a7c9'::integer, x'a7c9'::integer, 1), (x'a7cb'::integer, x'a7cb'::integer, -42343),
    (x'a7cc'::integer, x'a7cc'::integer, 1), (x'a7ce'::integer, x'a7ce'::integer, 1),
    (x'a7d0'::integer, x'a7d0'::integer, 1), (x'a7d2'::integer, x'a7d2'::integer, 1),
    (x'a7d4'::integer, x'a7d4'::integer, 1), (x'a7d6'::integer, x'a7d6'::integer, 1),
    (x'a7d8'::integer, x'a7d8'::integer, 1), (x'a7da'::integer, x'a7da'::integer, 1),
    (x'a7dc'::integer, x'a7dc'::integer, -42561), (x'a7f5'::integer, x'a7f5'::integer, 1),
    (x'10570'::integer, x'1057a'::integer, 39), (x'1057c'::integer, x'1058a'::integer, 39),
    (x'1058c'::integer, x'10592'::integer, 39), (x'10594'::integer, x'10595'::integer, 39),
    (x'10d50'::integer, x'10d65'::integer, 32), (x'16e40'::integer, x'16e5f'::integer, 32),
    (x'16ea0'::integer, x'16eb8'::integer, 27)
  ) AS letters (first, last, distance), generate_series(first, last) c;
  EXECUTE format($f$
    CREATE FUNCTION erp.expr_lower(value text) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
      BEGIN
        IF octet_length(value) = length(value) THEN RETURN lower(value COLLATE "C"); END IF;
        IF value COLLATE "C" ~ %L THEN value := translate(value, %L, %L); END IF;
        RETURN lower(replace(value, 'Σ', 'σ') COLLATE "und-x-icu");
      END $$ $f$, '[' || capital || ']', capital, small);
  EXECUTE format($f$
    CREATE FUNCTION erp.expr_upper(value text) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
      BEGIN
        IF octet_length(value) = length(value) THEN RETURN upper(value COLLATE "C"); END IF;
        IF erp.expr_has_failed(value) THEN RETURN value; END IF;
        IF value COLLATE "C" ~ %L THEN value := translate(value, %L, %L); END IF;
        RETURN upper(value COLLATE "und-x-icu");
      END $$ $f$, '[' || small || ']', small, capital);
END $do$;

CREATE FUNCTION erp.expr_substring(value text, first numeric, last numeric) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF erp.expr_has_failed(value) OR first = 'NaN' OR first <> trunc(first) OR abs(first) > 131072
      OR last = 'NaN' OR last <> trunc(last) OR abs(last) > 131072 THEN RETURN E'\u0958'; END IF;
    first := greatest(first, 0);
    RETURN substr(value, first::integer + 1, greatest(last - first, 0)::integer);
  END $$;

CREATE FUNCTION erp.expr_substring(value text, first numeric) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN erp.expr_substring(value, first, 131072);
  END $$;

CREATE FUNCTION erp.expr_replace(value text, part text, replacement text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  DECLARE
    parts bigint;
  BEGIN
    IF erp.expr_has_failed(value) OR erp.expr_has_failed(part) OR erp.expr_has_failed(replacement) THEN
      RETURN E'\u0958';
    END IF;
    IF part = '' THEN RETURN value; END IF;
    -- Counted before it is made: it could be longer than the database can hold.
    IF length(replacement) > length(part) THEN
      parts := (length(value) - length(replace(value, part, ''))) / length(part);
      IF length(value) + parts * (length(replacement) - length(part)) > 131072 THEN RETURN E'\u0958'; END IF;
    END IF;
    value := replace(value, part, replacement);
    RETURN CASE WHEN length(value) > 131072 THEN E'\u0958' ELSE value END;
  END $$;

CREATE FUNCTION erp.expr_join(a text, b text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF erp.expr_has_failed(a) OR erp.expr_has_failed(b) OR length(a) + length(b) > 131072 THEN
      RETURN E'\u0958';
    END IF;
    RETURN a || b;
  END $$;

CREATE FUNCTION erp.expr_trim(value text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT btrim(value, E'\t\n\u000B\f\r \u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF')
  $$;

CREATE FUNCTION erp.expr_size(value text) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN erp.expr_has_failed(value) THEN 'NaN'::numeric ELSE length(value) END;
  END $$;

CREATE FUNCTION erp.expr_ends_with(value text, ending text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN right(value, length(ending)) = ending;
  END $$;

-- Only white space, by the same characters as in fields of records.
CREATE FUNCTION erp.expr_is_white(value text) RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT value COLLATE "und-x-icu" !~ '\S' $$;

-- The following return true or false, or null when an operand has failed.

CREATE FUNCTION erp.expr_contains(value text, part text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value IS NULL OR part IS NULL THEN false
      WHEN erp.expr_has_failed(value) OR erp.expr_has_failed(part) THEN NULL
      ELSE strpos(value, part) > 0 END;
  END $$;

CREATE FUNCTION erp.expr_starts_with(value text, part text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value IS NULL OR part IS NULL THEN false
      WHEN erp.expr_has_failed(value) OR erp.expr_has_failed(part) THEN NULL
      ELSE starts_with(value, part) END;
  END $$;

CREATE FUNCTION erp.expr_ends(value text, part text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value IS NULL OR part IS NULL THEN false
      WHEN erp.expr_has_failed(value) OR erp.expr_has_failed(part) THEN NULL
      ELSE erp.expr_ends_with(value, part) END;
  END $$;

CREATE FUNCTION erp.expr_equal(a anyelement, b anyelement, failed anyelement) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN a = failed OR b = failed THEN NULL ELSE a IS NOT DISTINCT FROM b END;
  END $$;

CREATE FUNCTION erp.expr_matches(value text, pattern text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value IS NULL THEN false WHEN erp.expr_has_failed(value) THEN NULL ELSE value ~ pattern END;
  END $$;

CREATE FUNCTION erp.expr_is_blank(value text) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN erp.expr_has_failed(value) THEN NULL ELSE coalesce(erp.expr_is_white(value), true) END;
  END $$;

-- -1, 0 or 1; 2 when an operand is null; null when one has failed. Texts need COLLATE "C".
CREATE FUNCTION erp.expr_order(a anyelement, b anyelement, failed anyelement) RETURNS integer
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN a IS NULL OR b IS NULL THEN 2 WHEN a = failed OR b = failed THEN NULL
      WHEN a < b THEN -1 WHEN a = b THEN 0 ELSE 1 END;
  END $$;

CREATE FUNCTION erp.expr_in(value anyelement, list anyarray, failed anyelement) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value IS NULL OR list IS NULL THEN false
      WHEN value = failed OR failed = ANY (list) THEN NULL ELSE value = ANY (list) END;
  END $$;

CREATE FUNCTION erp.expr_is_null(value anyelement, failed anyelement) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN value = failed THEN NULL ELSE value IS NULL END;
  END $$;

-- A list without nulls; reduced to the failed item when it contains one.
CREATE FUNCTION erp.expr_list(items anyarray, failed anyelement) RETURNS anyarray
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN failed = ANY (items) THEN ARRAY[failed] ELSE array_remove(items, NULL) END;
  END $$;

CREATE FUNCTION erp.expr_size(list anyarray, failed anyelement) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN list = ARRAY[failed] THEN 'NaN'::numeric ELSE cardinality(list) END;
  END $$;

-- The result of a formula for its field: rounded half away from zero to `digits`, null when it exceeds `most`.
CREATE FUNCTION erp.expr_result(value numeric, most numeric, digits integer) RETURNS numeric
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    value := round(value, digits);
    RETURN CASE WHEN abs(value) <= most THEN value END;
  END $$;

CREATE FUNCTION erp.expr_result(value text, most integer) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    RETURN CASE WHEN length(value) <= most THEN value END;
  END $$;
