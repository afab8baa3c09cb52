/** The changes of a trail row as a list in API form: fields the reader sees and nothing else, decimals to the last digit. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import { columnType } from '../sql.ts';

/** What a reader sees of changes, bound to a statement once. */
interface ShownFields {
  readonly names: string;
  readonly asText: string;
}

/** `ieee754Compatible`: decimals come as JSON strings. */
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
export const changesJson = (changes: string, { names, asText }: ShownFields): string =>
  `(SELECT coalesce(json_agg((SELECT row_to_json(x) FROM (SELECT f.name AS field, ${side(changes, 'from')} AS "from", ${side(changes, 'to')} AS "to") x) ORDER BY f.n), '[]'::json)
    FROM unnest(${names}, ${asText}) WITH ORDINALITY f(name, as_text, n) WHERE ${changes} ? f.name)`;

const side = (changes: string, name: 'from' | 'to'): string =>
  `CASE WHEN f.as_text THEN to_jsonb(${changes} -> f.name ->> '${name}') ELSE ${changes} -> f.name -> '${name}' END`;
