-- Sizes of texts, in trigrams, as an index of trigrams keeps them beside these. Similar texts are of similar size: with both
-- in one index, texts that have all trigrams of a short one and many more are left out without being read.

-- Class of a size: sizes below 64 each have their own, larger ones share one with those that differ by a thirty-second.
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

-- The class of a text, alone in a list: the operators of lists look for one of many classes in one pass.
CREATE FUNCTION erp.fuzzy_class(value text) RETURNS integer[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ DECLARE
    class integer := erp.size_class(cardinality(public.show_trgm(erp.fuzzy_text(value))));
  BEGIN
    RETURN CASE WHEN class IS NOT NULL THEN ARRAY[class] END;
  END $$;

-- The classes of all texts that can be so similar to this one: with n trigrams, those of s × n to n ÷ s. A form has 2,000
-- characters at most, and hardly more trigrams.
CREATE FUNCTION erp.fuzzy_classes(value text, similarity float8) RETURNS integer[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 300
  AS $$ DECLARE
    size integer := cardinality(public.show_trgm(erp.fuzzy_text(value)));
  BEGIN
    RETURN ARRAY(SELECT generate_series(erp.size_class(ceil(size * similarity)::bigint),
      erp.size_class(least(floor(size / similarity), 4000)::bigint)));
  END $$;
