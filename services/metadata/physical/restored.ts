/**
 * Preparation of restored objects and fields before their indexes and foreign keys are made: the records that they referred to
 * may be gone by now. Pure; every name is quoted. Source: docs/reference/metadata.md#deleted-objects-and-fields.
 */
import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { isMasterDetail, isReference } from '../../../lib/schema/field-types/registry.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { type Component, componentKey, isOf, type State } from '../kinds/component.ts';
import { isRollup, onDelete } from '../kinds/field-attributes.ts';
import type { Model } from './model.ts';

interface Change {
  readonly before: State;
  readonly changed: readonly Component[];
  readonly deleted: readonly Component[];
  /** Deleted components that were kept before. */
  readonly retained: State;
  /** The tables afterwards. */
  readonly model: Model;
}

/** Removes details of restored objects whose master is gone, and empties references to nothing. */
export function restoringSql({ before, changed, retained, model }: Change, schema: string): string[] {
  const restored = changed.filter(({ type, fullName }) => {
    const key = componentKey(type, fullName);
    return !before.has(key) && retained.has(key);
  });
  const fields = restored.filter((component) => isOf(component, CUSTOM_FIELD));
  const objects = new Set(restored.filter((one) => isOf(one, CUSTOM_OBJECT)).map(({ fullName }) => fullName));
  const [masters, others] = [fields.filter(({ body }) => isMasterDetail(body)), fields.filter(isPlainReference)];
  return [
    ...mastersFirst(objects, masters).flatMap((field) =>
      onDelete(field.body) === 'cascade'
        ? [`DELETE FROM ${tableOf(field, schema)} x WHERE ${isOrphan(field, schema)}`]
        : [],
    ),
    ...others.map(
      (field) =>
        `UPDATE ${tableOf(field, schema)} x SET ${columnOf(field)} = NULL
          WHERE x.${columnOf(field)} IS NOT NULL AND ${isOrphan(field, schema)}`,
    ),
    ...fields.filter(({ body }) => !objects.has(body.object)).flatMap((field) => numberSql(field, model, schema)),
  ];
}

/** The columns of deleted rollups, which are computed anew when they come back. */
export const droppedRollupsSql = ({ deleted }: Pick<Change, 'deleted'>, schema: string): string[] =>
  deleted
    .filter((component) => isOf(component, CUSTOM_FIELD))
    .filter(({ body }) => isRollup(body))
    .map((field) => `ALTER TABLE ${tableOf(field, schema)} DROP COLUMN IF EXISTS ${columnOf(field)}`);

const isPlainReference = ({ body }: FieldComponent): boolean => isReference(body) && !isMasterDetail(body);

const tableOf = ({ body }: FieldComponent, schema: string): string => `${schema}.${identifier(body.object)}`;
const columnOf = ({ body }: FieldComponent): string => identifier(body.apiName);

/** Of rows `x`: the record that the field refers to does not exist. */
const isOrphan = (field: FieldComponent, schema: string): string =>
  `NOT EXISTS (SELECT FROM ${schema}.${identifier(field.body.referenceTo?.[0] ?? '')} p WHERE p.id = x.${columnOf(field)})`;

/** The masterDetail fields of restored objects, those of masters before those of their details. */
function mastersFirst(objects: ReadonlySet<string>, masters: readonly FieldComponent[]): FieldComponent[] {
  const byObject = Map.groupBy(masters, ({ body }) => body.object);
  const seen = new Set<string>();
  const ordered: FieldComponent[] = [];
  const visit = (object: string): void => {
    if (!objects.has(object) || seen.has(object)) return;
    seen.add(object);
    const own = byObject.get(object) ?? [];
    for (const { body } of own) for (const master of body.referenceTo ?? []) visit(master);
    ordered.push(...own);
  };
  for (const object of objects) visit(object);
  return ordered;
}

/** Records that were created without the field get the next numbers. */
function numberSql(field: FieldComponent, model: Model, schema: string): string[] {
  const { object, apiName } = field.body;
  return [...(model.get(object)?.sequences ?? [])]
    .filter(([, { column }]) => column === apiName)
    .map(
      ([sequence, { format }]) =>
        `UPDATE ${tableOf(field, schema)} t
          SET ${columnOf(field)} = ${formattedSql(format, 'numbered.n')}, "recordVersion" = t."recordVersion" + 1
          FROM (SELECT r.id, nextval(${literal(`${schema}.${identifier(sequence)}`)}) AS n FROM (
            SELECT id FROM ${tableOf(field, schema)} WHERE ${columnOf(field)} IS NULL ORDER BY "createdAt", id) r
          ) numbered WHERE numbered.id = t.id`,
    );
}
