/**
 * Changes of a trail row as a list in API form: only fields that the caller can read, decimals with all their digits.
 */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import { columnType } from '../sql.ts';

/** The fields that a caller sees of changes, bound to a statement once. */
interface ShownFields {
  /** SQL of text[]. */
  readonly names: string;
  /** SQL of boolean[]: which of them are returned as JSON strings. */
  readonly asText: string;
}

/** `ieee754Compatible`: decimals are returned as JSON strings. */
export function bindShown(sql: Sql, fields: readonly FieldMeta[], ieee754Compatible: boolean): ShownFields {
  const stored = fields.filter((field) => columnType(field) !== null);
  return {
    names: sql.bind(
      stored.map((field) => field.apiName),
      'text[]',
    ),
    asText: sql.bind(
      stored.map((field) => ieee754Compatible && isDecimal(field)),
      'boolean[]',
    ),
  };
}

export const isDecimal = (field: FieldMeta): boolean => fieldType(field.fieldType).bindType === 'numeric';

/** SQL of `[{field, from, to}]` as json, in the order of the object's fields; `changes` is `{field: {from, to}}`. */
export const fieldChangesSql = (changes: string, { names, asText }: ShownFields): string =>
  `(SELECT coalesce(json_agg((SELECT row_to_json(change) FROM (
        SELECT shown.name AS field, ${valueSql(changes, 'from')} AS "from", ${valueSql(changes, 'to')} AS "to") change)
      ORDER BY shown.position), '[]'::json)
    FROM unnest(${names}, ${asText}) WITH ORDINALITY shown(name, as_text, position)
    WHERE ${changes} ? shown.name)`;

const valueSql = (changes: string, side: 'from' | 'to'): string =>
  `CASE WHEN shown.as_text THEN to_jsonb(${changes} -> shown.name ->> '${side}')
      ELSE ${changes} -> shown.name -> '${side}' END`;
