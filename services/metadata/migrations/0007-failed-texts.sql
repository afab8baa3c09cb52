-- A text that stands for a failed evaluation is the letter U+0958: NFC writes it as two, so that no field and no constant
-- has it. Before it was a text beginning with U+FFFF, which a field can hold.

CREATE OR REPLACE FUNCTION erp.expr_has_failed(value text) RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT value = E'\u0958' $$;

CREATE OR REPLACE FUNCTION erp.expr_substring(value text, first numeric, last numeric) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF erp.expr_has_failed(value) OR first = 'NaN' OR first <> trunc(first) OR abs(first) > 131072
      OR last = 'NaN' OR last <> trunc(last) OR abs(last) > 131072 THEN RETURN E'\u0958'; END IF;
    first := greatest(first, 0);
    RETURN substr(value, first::integer + 1, greatest(last - first, 0)::integer);
  END $$;

CREATE OR REPLACE FUNCTION erp.expr_replace(value text, part text, replacement text) RETURNS text
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

CREATE OR REPLACE FUNCTION erp.expr_join(a text, b text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  BEGIN
    IF erp.expr_has_failed(a) OR erp.expr_has_failed(b) OR length(a) + length(b) > 131072 THEN
      RETURN E'\u0958';
    END IF;
    RETURN a || b;
  END $$;
