-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA erp;
GRANT USAGE ON SCHEMA erp TO PUBLIC;

CREATE FUNCTION erp."normalize"(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body 6c8444a8eb29

CREATE FUNCTION erp.base36(integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE -- body 9f66f07cac2a

CREATE FUNCTION erp.expr_add_days(date,numeric) RETURNS date LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 092ea8f0bd2f

CREATE FUNCTION erp.expr_add_days(timestamp with time zone,numeric) RETURNS timestamp with time zone LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body bc8e5bd0c5dc

CREATE FUNCTION erp.expr_add_months(date,numeric) RETURNS date LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 618cc4a54ffc

CREATE FUNCTION erp.expr_contains(text,text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body d7b85b318a7a

CREATE FUNCTION erp.expr_date_part(text,date) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body e10855a44b93

CREATE FUNCTION erp.expr_day(timestamp with time zone,text) RETURNS date LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 5447f9bbb2bf

CREATE FUNCTION erp.expr_days_between(date,date) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 19cdd81732d5

CREATE FUNCTION erp.expr_divide(numeric,numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body f36cd1c19d1f

CREATE FUNCTION erp.expr_ends(text,text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body d134c2c85935

CREATE FUNCTION erp.expr_ends_with(text,text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 33799405e7dd

CREATE FUNCTION erp.expr_equal(anyelement,anyelement,anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body 249b5c9a4bda

CREATE FUNCTION erp.expr_has_failed(text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body 804f475e36d6

CREATE FUNCTION erp.expr_in(anyelement,anyarray,anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body 802e1438af71

CREATE FUNCTION erp.expr_is_blank(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body 2461f0002f2c

CREATE FUNCTION erp.expr_is_null(anyelement,anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body 81473813f059

CREATE FUNCTION erp.expr_is_white(text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body 0b99b0d84763

CREATE FUNCTION erp.expr_join(text,text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body b8e4b0526682

CREATE FUNCTION erp.expr_list(anyarray,anyelement) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 271e3445e51a

CREATE FUNCTION erp.expr_lower(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 5c06566357b1

CREATE FUNCTION erp.expr_matches(text,text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body ac11655e52f7

CREATE FUNCTION erp.expr_max(numeric,numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body b043f882f9dd

CREATE FUNCTION erp.expr_min(numeric,numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body a41214b48d0e

CREATE FUNCTION erp.expr_number(numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body d11bb52c2ce2

CREATE FUNCTION erp.expr_order(anyelement,anyelement,anyelement) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body 08a2f620a36e

CREATE FUNCTION erp.expr_remainder(numeric,numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 782ae6910f13

CREATE FUNCTION erp.expr_replace(text,text,text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 21f1b172c2e8

CREATE FUNCTION erp.expr_result(numeric,numeric,integer) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body dc4da93f9a38

CREATE FUNCTION erp.expr_result(text,integer) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 17f3b542bca1

CREATE FUNCTION erp.expr_round(numeric,numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 96113d39cb98

CREATE FUNCTION erp.expr_size(anyarray,anyelement) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 84c3c0219351

CREATE FUNCTION erp.expr_size(text) RETURNS numeric LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body d0325e97e45a

CREATE FUNCTION erp.expr_starts_with(text,text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE -- body de637df494f3

CREATE FUNCTION erp.expr_substring(text,numeric) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body a39bb63354a7

CREATE FUNCTION erp.expr_substring(text,numeric,numeric) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body f5b8fceaeef4

CREATE FUNCTION erp.expr_trim(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body a9b05ca58469

CREATE FUNCTION erp.expr_upper(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 73914d4d3013

CREATE FUNCTION erp.expr_zone(text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT -- body a343e82b3f8a

CREATE FUNCTION erp.fuzzy_class(text) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body e7a92b4e2bf6

CREATE FUNCTION erp.fuzzy_classes(text,double precision) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 26d72f99579b

CREATE FUNCTION erp.fuzzy_size(text) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body f7d37d132d59

CREATE FUNCTION erp.fuzzy_text(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body c541fb022d27

CREATE FUNCTION erp.input_is_valid(text,text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE STRICT -- body 87d5d72aa935

CREATE FUNCTION erp.like_text(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body d374d72c9250

CREATE FUNCTION erp.match_email(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 18b21b3f05e9

CREATE FUNCTION erp.match_phone(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 4cc0726b3dfb

CREATE FUNCTION erp.match_text(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body 764f1a291679

CREATE FUNCTION erp.match_url(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body f8eba05bf405

CREATE FUNCTION erp.search_pattern(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT -- body 4a60b6683a4f

CREATE FUNCTION erp.search_text(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body e332a08d435e

CREATE FUNCTION erp.size_class(bigint) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT -- body a8b3002094f4

CREATE FUNCTION erp.unaccent(regdictionary,text) RETURNS text LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT -- body 26018d65d186
